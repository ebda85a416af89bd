package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-zookeeper/zk"
)

// rootPrefix begins the roots of tests, so that a person who looks into a shared
// server knows whose they are.
const rootPrefix = "/leaf-test-"

func (z zooKeeper) fresh(ctx context.Context, servers []string) (root string, drop func(context.Context) error, err error) {
	root = rootPrefix + strings.ToLower(rand.Text())
	err = z.connected(ctx, servers, func(c *zk.Conn) error {
		_, err := c.Create(root, nil, 0, zk.WorldACL(zk.PermAll))
		return err
	})
	if err != nil {
		return "", nil, fmt.Errorf("create %s: %w", root, err)
	}
	return root, func(ctx context.Context) error {
		if err := z.connected(ctx, servers, func(c *zk.Conn) error { return removeTree(c, root) }); err != nil {
			return fmt.Errorf("remove %s: %w", root, err)
		}
		return nil
	}, nil
}

// connected runs do in a session of its own. The client's calls take no context:
// closing the session is what ends them.
func (zooKeeper) connected(ctx context.Context, servers []string, do func(*zk.Conn) error) error {
	c, events, err := zk.Connect(servers, zooKeeperSession, zk.WithLogger(silent{}), zk.WithLogInfo(false))
	if err != nil {
		return err
	}
	closeOnce := context.AfterFunc(ctx, c.Close)
	err = do(c)
	closeOnce()
	c.Close()
	for range events { // closed when the client's goroutines are done
	}
	if ctx.Err() != nil {
		return errors.Join(ctx.Err(), err)
	}
	return err
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// removeTree deletes root and all below. Clients that have not noticed the end
// of their test may still write there, so it tries a few times.
func removeTree(c *zk.Conn, root string) error {
	var err error
	for range 10 {
		var paths []string
		if paths, err = postOrder(c, root); err != nil {
			return err
		}
		if err = removeAll(c, paths); err == nil {
			return nil
		}
		if !errors.Is(err, zk.ErrNotEmpty) && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	return err
}

// postOrder lists a node after all that is below it. The children are asked for side
// by side: one after another, thousands of answers took half a minute on a busy machine.
func postOrder(c *zk.Conn, path string) ([]string, error) {
	children, _, err := c.Children(path)
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", path, err)
	}
	below := make([][]string, len(children))
	errs := make([]error, len(children))
	var all sync.WaitGroup
	for i, child := range children {
		all.Go(func() { below[i], errs[i] = postOrder(c, path+"/"+child) })
	}
	all.Wait()
	return append(slices.Concat(below...), path), errors.Join(errs...)
}

// removeAll deletes in batches: one node at a time would cost one write to the
// disk each, and a test may have left thousands.
func removeAll(c *zk.Conn, paths []string) error {
	const batch = 500
	for len(paths) > 0 {
		n := min(batch, len(paths))
		var deletes []any
		for _, path := range paths[:n] {
			deletes = append(deletes, &zk.DeleteRequest{Path: path, Version: -1})
		}
		if _, err := c.Multi(deletes...); err != nil {
			return err
		}
		paths = paths[n:]
	}
	return nil
}
