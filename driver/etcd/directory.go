package etcd

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-idgen/leaf/discovery"
)

// Directory is a discovery.Directory: one key for each node, below the prefix and a
// slash, on a lease. etcd counts in whole seconds and may have a lower limit, so a short
// ttl can last longer. Use NewDirectory, and Close at the end. All methods are safe for
// concurrent use.
type Directory struct {
	*conn

	reader *discovery.Reader
	of     *Store // whose cluster's nodes are in it; nil: that is not known
}

var _ discovery.Directory = (*Directory)(nil)

// NewDirectory returns a Directory. It does not connect, and does not use cfg.Lease. The
// error is leaf.ErrBadRequest and names the field.
func NewDirectory(cfg Config) (*Directory, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	return &Directory{conn: newConn(cfg), reader: discovery.NewReader(cfg.Logger)}, nil
}

// BelongTo says that this is the directory of the cluster of a store in the same etcd. Call it before any other method. Put
// and List are a *segment.ClusterError beside the store of another cluster (rule V).
func (d *Directory) BelongTo(s *Store) { d.of = s }

func (d *Directory) folder() string { return d.cfg.Prefix + "/" }

// Put implements discovery.Directory. Each call takes a lease of its own: nothing need
// be remembered or repaired, and the lease of the call before ends by itself without
// taking the key along.
func (d *Directory) Put(ctx context.Context, n discovery.Node, ttl time.Duration) error {
	if err := discovery.CheckPut(n, ttl); err != nil {
		return err
	}
	key := d.folder() + n.ID
	var entry clientv3.Op
	err := d.do(ctx, func(client *clientv3.Client) error {
		lease, err := client.Grant(ctx, int64((ttl+time.Second-1)/time.Second))
		if err != nil {
			return err
		}
		entry = clientv3.OpPut(key, n.Encode(), clientv3.WithLease(lease.ID))
		if d.of == nil {
			_, err = client.Do(ctx, entry)
		}
		return err
	})
	if err == nil && d.of != nil {
		_, _, err = d.of.write(ctx, nil, []clientv3.Op{entry}, nil)
	}
	if err != nil {
		return fmt.Errorf("write etcd key %q with a lease: %w", key, err)
	}
	return nil
}

// Remove implements discovery.Directory.
func (d *Directory) Remove(ctx context.Context, id string) error {
	if err := discovery.CheckID(id); err != nil {
		return err
	}
	key := d.folder() + id
	err := d.do(ctx, func(client *clientv3.Client) error {
		_, err := client.Delete(ctx, key)
		return err
	})
	if err != nil {
		return fmt.Errorf("delete etcd key %q: %w", key, err)
	}
	return nil
}

// List implements discovery.Directory.
func (d *Directory) List(ctx context.Context) ([]discovery.Node, error) {
	kvs, err := d.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the nodes below etcd key %q: %w", d.folder(), err)
	}
	entries := make([]discovery.Entry, len(kvs))
	for i, kv := range kvs {
		key := string(kv.Key)
		entries[i] = discovery.Entry{Place: "etcd key " + key, ID: strings.TrimPrefix(key, d.folder()), Text: kv.Value}
	}
	return d.reader.Nodes(entries), nil
}

func (d *Directory) list(ctx context.Context) ([]*mvccpb.KeyValue, error) {
	if d.of != nil {
		read, _, err := d.of.look(ctx, getAll(d.folder()))
		if err != nil {
			return nil, err
		}
		return found(read[0]), nil
	}
	response, err := d.commit(ctx, nil, []clientv3.Op{getAll(d.folder())}, nil)
	if err != nil {
		return nil, err
	}
	return found(response.Responses[0]), nil
}
