package etcd

import (
	"context"
	"fmt"
	"strings"
	"time"

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
}

var _ discovery.Directory = (*Directory)(nil)

// NewDirectory returns a Directory. It does not connect, and does not use cfg.Lease. The
// error is leaf.ErrBadRequest and names the field.
func NewDirectory(cfg Config) (*Directory, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	return &Directory{newConn(cfg), discovery.NewReader(cfg.Logger)}, nil
}

func (d *Directory) folder() string { return d.cfg.Prefix + "/" }

// Put implements discovery.Directory. Each call takes a lease of its own: nothing need
// be remembered or repaired, and the lease of the call before ends by itself without
// taking the key along.
func (d *Directory) Put(ctx context.Context, n discovery.Node, ttl time.Duration) error {
	if err := discovery.CheckPut(n, ttl); err != nil {
		return err
	}
	key := d.folder() + n.ID
	err := d.do(ctx, func(client *clientv3.Client) error {
		lease, err := client.Grant(ctx, int64((ttl+time.Second-1)/time.Second))
		if err != nil {
			return err
		}
		_, err = client.Put(ctx, key, n.Encode(), clientv3.WithLease(lease.ID))
		return err
	})
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
	var response *clientv3.GetResponse
	err := d.do(ctx, func(client *clientv3.Client) (err error) {
		response, err = client.Get(ctx, d.folder(), clientv3.WithPrefix())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the nodes below etcd key %q: %w", d.folder(), err)
	}
	entries := make([]discovery.Entry, len(response.Kvs))
	for i, kv := range response.Kvs {
		key := string(kv.Key)
		entries[i] = discovery.Entry{Place: "etcd key " + key, ID: strings.TrimPrefix(key, d.folder()), Text: kv.Value}
	}
	return d.reader.Nodes(entries), nil
}
