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
// ttl can last longer. Put and List of one that belongs to a store compare its cluster (BelongTo).
// Use NewDirectory, and Close at the end. All methods are safe for concurrent use.
type Directory struct {
	beside

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
	return &Directory{beside: beside{conn: newConn(cfg)}, reader: discovery.NewReader(cfg.Logger)}, nil
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
	var lease *clientv3.LeaseGrantResponse
	err := d.do(ctx, func(client *clientv3.Client) (err error) {
		lease, err = client.Grant(ctx, int64((ttl+time.Second-1)/time.Second))
		return err
	})
	if err == nil {
		err = d.write(ctx, nil, clientv3.OpPut(key, n.Encode(), clientv3.WithLease(lease.ID)))
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
	read, err := d.look(ctx, getAll(d.folder()))
	if err != nil {
		return nil, fmt.Errorf("read the nodes below etcd key %q: %w", d.folder(), err)
	}
	kvs := found(read[0])
	entries := make([]discovery.Entry, len(kvs))
	for i, kv := range kvs {
		key := string(kv.Key)
		entries[i] = discovery.Entry{Place: "etcd key " + key, ID: strings.TrimPrefix(key, d.folder()), Text: kv.Value}
	}
	return d.reader.Nodes(entries), nil
}
