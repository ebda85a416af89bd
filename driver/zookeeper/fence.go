package zookeeper

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"regexp"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-idgen/leaf/segment/fence"
)

// Fence is the cluster fence of segment mode. Use NewFence. All methods are safe for
// concurrent use.
//
// The namespace is /leaf/fence/<name>, whose data names the incarnation, a folder
// below it with one node for each tag. The folder's data is the ID of the cluster. An entry's version is its mzxid, the number
// of the transaction that wrote it, which grows also when a node is deleted and
// created again.
type Fence struct {
	*conn

	root string
}

var _ fence.Cluster = (*Fence)(nil)

// incarnations are what rand.Text returns.
var incarnations = regexp.MustCompile(`^[A-Z2-7]{26}$`)

// NewFence returns a fence that connects with its first call. An error is
// leaf.ErrBadRequest.
func NewFence(cfg Config) (*Fence, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Fence{conn: newConn(cfg), root: cfg.Chroot + "/leaf/fence/" + cfg.Name}, nil
}

// Open implements fence.Cluster.
func (f *Fence) Open(ctx context.Context) (space string, created bool, err error) {
	for {
		if err := f.sync(ctx, "/"); err != nil {
			return "", false, err
		}
		n, err := f.get(ctx, f.root)
		if err != nil {
			return "", false, err
		}
		var ops []any
		fresh := rand.Text()
		data := encode(fenceRecord{Format: format, Incarnation: fresh})
		if n == nil {
			if err := f.ensure(ctx, parent(f.root)); err != nil {
				return "", false, err
			}
			ops = append(ops, create(f.root, data))
		} else {
			var r fenceRecord
			if err := decodeFence(f.root, n.data, &r); err != nil {
				return "", false, err
			}
			folder := f.folder(r.Incarnation)
			if found, err := f.get(ctx, folder); found != nil || err != nil {
				return r.Incarnation, false, err
			}
			// Its entries are lost. The write proves it again: the session may have ended between
			// the two reads, and the second one may have been answered by a server that is behind.
			ops = append(ops, create(folder, nil), remove(folder, 0), set(f.root, data, n.stat.Version))
		}
		ops = append(ops, create(f.folder(fresh), nil))
		if _, err = f.change(ctx, f.root, ops...); err == nil {
			return fresh, true, nil
		}
		if !errors.Is(err, errMoved) {
			return "", false, err
		}
	}
}

// decodeFence is decode for records that are no worker ID's.
func decodeFence(p string, data []byte, record any) error {
	if err := decode(p, data, record); err != nil {
		return fmt.Errorf("node %s is not one of the cluster fence: %.80q", p, data)
	}
	return nil
}

func (f *Fence) folder(space string) string { return f.root + "/" + space }

func (f *Fence) entry(space, tag string) string { return f.folder(space) + "/" + escape(tag) }

// Identify implements fence.Cluster.
func (f *Fence) Identify(ctx context.Context, space, id string) (string, error) {
	if !incarnations.MatchString(space) {
		return "", f.missing(ctx, space)
	}
	p := f.folder(space)
	for {
		if err := f.sync(ctx, "/"); err != nil {
			return "", err
		}
		n, err := f.get(ctx, p)
		switch {
		case err != nil:
			return "", err
		case n == nil:
			return "", f.missing(ctx, space)
		case len(n.data) > 0 || id == "":
			return string(n.data), nil
		}
		_, err = f.change(ctx, p, set(p, []byte(id), n.stat.Version))
		switch {
		case errors.Is(err, zk.ErrNoAuth): // granted before the folder had data
			return "", nil
		case err != nil && !errors.Is(err, errMoved): // with errMoved another node was faster, or the folder is gone
			return "", err
		}
	}
}

// missing returns fence.ErrReplaced if space is not, or no longer, there.
func (f *Fence) missing(ctx context.Context, space string) error {
	if !incarnations.MatchString(space) {
		return fmt.Errorf("%w: %s has no incarnation %q", fence.ErrReplaced, f.root, space)
	}
	folder, err := f.get(ctx, f.folder(space))
	if folder == nil && err == nil {
		return fmt.Errorf("%w: %s has no incarnation %s any more", fence.ErrReplaced, f.root, space)
	}
	return err
}

// Read implements fence.Cluster.
func (f *Fence) Read(ctx context.Context, space, tag string) (e fence.Entry, ok bool, err error) {
	if err := fence.CheckEntry(tag, 0); err != nil {
		return e, false, err
	}
	if err := f.sync(ctx, "/"); err != nil {
		return e, false, err
	}
	n, err := f.read(ctx, space, tag)
	if n == nil || err != nil {
		return e, false, err
	}
	end, err := parseEntry(f.entry(space, tag), tag, n.data)
	if err != nil {
		return e, false, err
	}
	return fence.Entry{End: end, Version: n.stat.Mzxid}, true, nil
}

// parseEntry returns the end that the entry of a tag holds.
func parseEntry(p, tag string, data []byte) (int64, error) {
	var r entryRecord
	if err := decodeFence(p, data, &r); err != nil {
		return 0, err
	}
	if r.End == nil {
		return 0, fmt.Errorf("node %s holds no end of a range: %.80q", p, data)
	}
	if err := fence.CheckEntry(tag, *r.End); err != nil {
		return 0, fmt.Errorf("node %s holds no end of a range: %w", p, err)
	}
	return *r.End, nil
}

// read returns the node of an entry, nil if space, which is still there, has none.
func (f *Fence) read(ctx context.Context, space, tag string) (*node, error) {
	if !incarnations.MatchString(space) {
		return nil, f.missing(ctx, space)
	}
	n, err := f.get(ctx, f.entry(space, tag))
	if n == nil && err == nil {
		err = f.missing(ctx, space)
	}
	return n, err
}

// Swap implements fence.Cluster. ZooKeeper compares the data version of the
// node, which belongs to the mzxid that is read first. Nothing comes in between: a
// write changes the version too, and no driver deletes an entry.
func (f *Fence) Swap(ctx context.Context, space, tag string, old *fence.Entry, end int64) (fence.Entry, error) {
	var none fence.Entry
	if err := fence.CheckEntry(tag, end); err != nil {
		return none, err
	}
	n, err := f.read(ctx, space, tag)
	if err != nil {
		return none, err
	}
	moved := fmt.Errorf("fence of tag %q: %w", tag, fence.ErrMoved)
	p, data := f.entry(space, tag), encode(entryRecord{Format: format, End: new(end)})
	var ops []any
	switch {
	case (old == nil) != (n == nil), n != nil && n.stat.Mzxid != old.Version:
		return none, moved
	case n != nil && !f.holds(n, p, tag, old.End):
		return none, moved
	case n == nil: // the second operation answers with the mzxid, which a creation does not
		ops = []any{create(p, data), set(p, data, 0)}
	case n.stat.Version == -1:
		return none, fmt.Errorf("fence of tag %q: %s was written 2^32 times; its next version would match everything", tag, p)
	default:
		ops = []any{set(p, data, n.stat.Version)}
	}
	results, err := f.change(ctx, p, ops...)
	switch {
	case errors.Is(err, errMoved) && errors.Is(err, zk.ErrNoNode):
		return none, errors.Join(f.missing(ctx, space), moved)
	case errors.Is(err, errMoved):
		return none, moved
	case err != nil:
		return none, err
	}
	return fence.Entry{End: end, Version: results[len(results)-1].Stat.Mzxid}, nil
}

// holds reports whether the entry says end. A cluster that was restored from a snapshot
// counts from an earlier mzxid again, so the same one can stand for another write.
func (*Fence) holds(n *node, p, tag string, end int64) bool {
	now, err := parseEntry(p, tag, n.data)
	return err == nil && now == end
}

// Close ends the connection. It may be repeated.
func (f *Fence) Close() error {
	f.close()
	return nil
}
