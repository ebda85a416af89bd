package etcd

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-idgen/leaf/segment/fence"
)

// Fence is a fence.Cluster. Use NewFence, and Close at the end. All methods
// are safe for concurrent use.
//
// The incarnation is part of the key of each entry, and every transaction asks for
// the incarnation and for the mark among its entries: to delete either, or all keys
// below entries/, makes the next Open begin a new incarnation.
type Fence struct{ *conn }

var _ fence.Cluster = (*Fence)(nil)

// NewFence returns a Fence. It does not connect. The error is leaf.ErrBadRequest and
// names the field.
func NewFence(cfg Config) (*Fence, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	return &Fence{newConn(cfg)}, nil
}

func (f *Fence) incarnationKey() string { return f.cfg.Prefix + "/incarnation" }

// entryKey is the key of a tag's entry, and with an empty tag, which no entry has,
// that of the mark, whose value is the ID of the cluster. A tag comes last, so that no byte of it need be escaped.
func (f *Fence) entryKey(space, tag string) string {
	return f.cfg.Prefix + "/entries/" + space + "/" + tag
}

// current are the conditions that space is the present incarnation and complete.
func (f *Fence) current(space string) []clientv3.Cmp {
	return []clientv3.Cmp{
		clientv3.Compare(clientv3.Value(f.incarnationKey()), "=", space),
		clientv3.Compare(clientv3.CreateRevision(f.entryKey(space, "")), ">", 0),
	}
}

// Open implements fence.Cluster.
func (f *Fence) Open(ctx context.Context) (space string, created bool, err error) {
	// Each round loses only against an incarnation that another node began.
	for {
		found, err := f.commit(ctx, nil, []clientv3.Op{clientv3.OpGet(f.incarnationKey())}, nil)
		if err != nil {
			return "", false, fmt.Errorf("read etcd key %q: %w", f.incarnationKey(), err)
		}
		var revision int64 // 0: the key is absent
		if kvs := found.Responses[0].GetResponseRange().Kvs; len(kvs) > 0 {
			revision, space = kvs[0].ModRevision, string(kvs[0].Value)
			response, err := f.commit(ctx, f.current(space), nil, nil)
			if err != nil {
				return "", false, fmt.Errorf("read the fence below etcd key %q: %w", f.cfg.Prefix, err)
			}
			if response.Succeeded {
				return space, false, nil
			}
		}
		space = rand.Text()
		response, err := f.commit(ctx,
			[]clientv3.Cmp{clientv3.Compare(clientv3.ModRevision(f.incarnationKey()), "=", revision)},
			[]clientv3.Op{clientv3.OpPut(f.incarnationKey(), space), clientv3.OpPut(f.entryKey(space, ""), "")}, nil)
		if err != nil {
			return "", false, fmt.Errorf("create etcd key %q: %w", f.incarnationKey(), err)
		}
		if response.Succeeded {
			return space, true, nil
		}
	}
}

// Identify implements fence.Cluster.
func (f *Fence) Identify(ctx context.Context, space, id string) (string, error) {
	mark := f.entryKey(space, "")
	for {
		response, err := f.commit(ctx, f.current(space), []clientv3.Op{get(mark)}, nil)
		if err != nil {
			return "", fmt.Errorf("read etcd key %q: %w", mark, err)
		}
		if !response.Succeeded {
			return "", fmt.Errorf("cluster of the fence: %w", fence.ErrReplaced)
		}
		if known := string(found(response.Responses[0])[0].Value); known != "" || id == "" {
			return known, nil
		}
		// If another node was faster, the next round finds its ID.
		unnamed := append(f.current(space), clientv3.Compare(clientv3.Value(mark), "=", ""))
		if _, err := f.commit(ctx, unnamed, []clientv3.Op{put(mark, id)}, nil); err != nil {
			return "", fmt.Errorf("write etcd key %q: %w", mark, err)
		}
	}
}

// Read implements fence.Cluster.
func (f *Fence) Read(ctx context.Context, space, tag string) (e fence.Entry, ok bool, err error) {
	if err := fence.CheckEntry(tag, 0); err != nil {
		return e, false, err
	}
	key := f.entryKey(space, tag)
	response, err := f.commit(ctx, f.current(space), []clientv3.Op{clientv3.OpGet(key)}, nil)
	if err != nil {
		return e, false, fmt.Errorf("read etcd key %q: %w", key, err)
	}
	if !response.Succeeded {
		return e, false, fmt.Errorf("fence of tag %q: %w", tag, fence.ErrReplaced)
	}
	kvs := response.Responses[0].GetResponseRange().Kvs
	if len(kvs) == 0 {
		return e, false, nil
	}
	end, err := strconv.ParseInt(string(kvs[0].Value), 10, 64)
	if err == nil {
		err = fence.CheckEntry(tag, end)
	}
	if err != nil {
		return e, false, fmt.Errorf("etcd key %q holds no end of a range: %w", key, err)
	}
	return fence.Entry{End: end, Version: kvs[0].ModRevision}, true, nil
}

// Swap implements fence.Cluster.
func (f *Fence) Swap(ctx context.Context, space, tag string, old *fence.Entry, end int64) (fence.Entry, error) {
	if err := fence.CheckEntry(tag, end); err != nil {
		return fence.Entry{}, err
	}
	key := f.entryKey(space, tag)
	conditions := f.current(space)
	if old == nil {
		conditions = append(conditions, clientv3.Compare(clientv3.CreateRevision(key), "=", 0))
	} else {
		// The end too: a cluster that was restored from a snapshot counts from an
		// earlier revision again.
		conditions = append(conditions,
			clientv3.Compare(clientv3.ModRevision(key), "=", old.Version),
			clientv3.Compare(clientv3.Value(key), "=", strconv.FormatInt(old.End, 10)))
	}
	response, err := f.commit(ctx, conditions,
		[]clientv3.Op{clientv3.OpPut(key, strconv.FormatInt(end, 10))},
		[]clientv3.Op{clientv3.OpTxn(f.current(space), nil, []clientv3.Op{clientv3.OpGet(key)})})
	if err != nil {
		return fence.Entry{}, fmt.Errorf("write etcd key %q: %w", key, err)
	}
	if response.Succeeded {
		return fence.Entry{End: end, Version: response.Header.Revision}, nil
	}
	if !response.Responses[0].GetResponseTxn().Succeeded {
		return fence.Entry{}, fmt.Errorf("fence of tag %q: %w", tag, fence.ErrReplaced)
	}
	return fence.Entry{}, fmt.Errorf("fence of tag %q: %w", tag, fence.ErrMoved)
}
