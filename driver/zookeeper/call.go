package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"

	"github.com/go-zookeeper/zk"
)

// node is what one path holds. A nil *node stands for a path without a node.
type node struct {
	data []byte
	stat zk.Stat
}

// everybody may do everything: the layout of the Java server knows no ACL.
var everybody = zk.WorldACL(zk.PermAll)

// get returns the node at p, nil if there is none.
func (c *conn) get(ctx context.Context, p string) (*node, error) {
	n, err := call(ctx, c, "read", p, func(z client) (*node, error) {
		data, stat, err := z.Get(p)
		if err != nil {
			return nil, err
		}
		return &node{data, *stat}, nil
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return n, err
}

// getAll returns the nodes at paths, in their order. The client pipelines the
// requests, so that a thousand take few round trips.
func (c *conn) getAll(ctx context.Context, paths []string) ([]*node, error) {
	nodes := make([]*node, len(paths))
	errs := make([]error, len(paths))
	next := make(chan int)
	var group sync.WaitGroup
	for range min(len(paths), inFlight/2) {
		group.Go(func() {
			for i := range next {
				nodes[i], errs[i] = c.get(ctx, paths[i])
			}
		})
	}
	for i := range paths {
		next <- i
	}
	close(next)
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err // one is enough to read
		}
	}
	return nodes, nil
}

// children returns the names below p, none if p does not exist.
func (c *conn) children(ctx context.Context, p string) ([]string, error) {
	names, err := call(ctx, c, "list", p, func(z client) ([]string, error) {
		names, _, err := z.Children(p)
		return names, err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return names, err
}

// child is a node and its name below its parent.
type child struct {
	name string
	*node
}

// list returns the nodes below p. Those that vanish meanwhile are left out.
func (c *conn) list(ctx context.Context, p string) ([]child, error) {
	names, err := c.children(ctx, p)
	if err != nil {
		return nil, err
	}
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = p + "/" + name
	}
	nodes, err := c.getAll(ctx, paths)
	if err != nil {
		return nil, err
	}
	var all []child
	for i, n := range nodes {
		if n != nil {
			all = append(all, child{names[i], n})
		}
	}
	return all, nil
}

// sync makes the next reads at least as new as this call. A server may be behind
// the others, and a new session may be at another server than the last one.
func (c *conn) sync(ctx context.Context, p string) error {
	_, err := call(ctx, c, "sync", p, func(z client) (string, error) { return z.Sync(p) })
	return err
}

// ensure makes p and its parents, if they are missing.
func (c *conn) ensure(ctx context.Context, p string) error {
	_, err := call(ctx, c, "create", p, func(z client) (string, error) {
		return z.Create(p, nil, zk.FlagPersistent, everybody)
	})
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		return nil
	case errors.Is(err, zk.ErrNoNode) && path.Dir(p) != "/":
		if err := c.ensure(ctx, path.Dir(p)); err != nil {
			return err
		}
		return c.ensure(ctx, p)
	}
	return err
}

// ensureAll is ensure of each path.
func (c *conn) ensureAll(ctx context.Context, paths ...string) error {
	for _, p := range paths {
		if err := c.ensure(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// change does all of ops or nothing. The error is errMoved if one of them did not
// find what it expects.
func (c *conn) change(ctx context.Context, p string, ops ...any) ([]zk.MultiResponse, error) {
	results, err := call(ctx, c, "write", p, func(z client) ([]zk.MultiResponse, error) { return z.Multi(ops...) })
	for _, expected := range []error{zk.ErrNoNode, zk.ErrNodeExists, zk.ErrBadVersion, zk.ErrNotEmpty} {
		if errors.Is(err, expected) {
			return nil, fmt.Errorf("%w: %w", errMoved, err)
		}
	}
	return results, err
}

func create(p string, data []byte) any {
	return &zk.CreateRequest{Path: p, Data: data, Acl: everybody, Flags: zk.FlagPersistent}
}

func createEphemeral(p string, data []byte) any {
	return &zk.CreateRequest{Path: p, Data: data, Acl: everybody, Flags: zk.FlagEphemeral}
}

func createNumbered(prefix string, data []byte) any {
	return &zk.CreateRequest{Path: prefix, Data: data, Acl: everybody, Flags: zk.FlagSequence}
}

func set(p string, data []byte, version int32) any {
	return &zk.SetDataRequest{Path: p, Data: data, Version: version}
}

func remove(p string, version int32) any { return &zk.DeleteRequest{Path: p, Version: version} }

// unchanged expects a node with this data version.
func unchanged(p string, version int32) any {
	return &zk.CheckVersionRequest{Path: p, Version: version}
}

// exists expects a node, however often it was set, and count sets it once more. A guard, which says something by its name
// alone, has any version where a program has copied it that makes a node first and sets its data then.
func exists(p string) any { return unchanged(p, anyVersion) }
func count(p string) any  { return set(p, nil, anyVersion) }

const anyVersion = -1
