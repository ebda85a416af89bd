package zookeeper

import (
	"context"
	"errors"
	"time"

	"github.com/leaf-idgen/leaf/discovery"
)

// Directory is a discovery.Directory: one ephemeral node /leaf/node/<name>/<id> for each
// node of the cluster. Use NewDirectory. All methods are safe for concurrent use.
//
// An entry lasts as long as the session of the process that put it: as long as the
// process runs and reaches a server, and SessionTimeout after that, within the limits of
// the servers. The ttl of a Put is not counted, because ZooKeeper tells its clients no
// time that all of them could compare with. A Put after the loss of a session, or after
// the entry was removed, makes it anew.
type Directory struct {
	*conn

	root   string
	reader *discovery.Reader
}

var _ discovery.Directory = (*Directory)(nil)

// NewDirectory returns a directory that connects with its first call. An error is
// leaf.ErrBadRequest.
func NewDirectory(cfg Config) (*Directory, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Directory{conn: newConn(cfg), root: cfg.Chroot + "/leaf/node/" + cfg.Name, reader: discovery.NewReader(cfg.Logger)}, nil
}

// Put implements discovery.Directory.
func (d *Directory) Put(ctx context.Context, n discovery.Node, ttl time.Duration) error {
	if err := discovery.CheckPut(n, ttl); err != nil {
		return err
	}
	p, data := d.root+"/"+n.ID, n.Encode()
	for {
		if err := d.sync(ctx, "/"); err != nil {
			return err
		}
		s, err := d.use(ctx)
		if err != nil {
			return err
		}
		old, err := d.get(ctx, p)
		if err != nil {
			return err
		}
		if old != nil && string(old.data) == data && old.stat.EphemeralOwner == s.zk.SessionID() {
			return nil
		}
		ops := []any{createEphemeral(p, []byte(data))}
		if old != nil { // perhaps that of a session that still has to run out
			ops = append([]any{remove(p, old.stat.Version)}, ops...)
		}
		if _, err = d.change(ctx, p, ops...); !errors.Is(err, errMoved) {
			return err
		}
		if old == nil { // perhaps the folder is missing; else another call was faster
			if err := d.ensure(ctx, d.root); err != nil {
				return err
			}
		}
	}
}

// Remove implements discovery.Directory. The requests of a session are carried out in
// their order, so a Put that was abandoned does not come after it.
func (d *Directory) Remove(ctx context.Context, id string) error {
	if err := discovery.CheckID(id); err != nil {
		return err
	}
	p := d.root + "/" + id
	for {
		if err := d.sync(ctx, "/"); err != nil {
			return err
		}
		old, err := d.get(ctx, p)
		if old == nil || err != nil {
			return err
		}
		if _, err := d.change(ctx, p, remove(p, old.stat.Version)); !errors.Is(err, errMoved) {
			return err
		}
	}
}

// List implements discovery.Directory.
func (d *Directory) List(ctx context.Context) ([]discovery.Node, error) {
	if err := d.sync(ctx, "/"); err != nil {
		return nil, err
	}
	all, err := d.list(ctx, d.root)
	if err != nil {
		return nil, err
	}
	entries := make([]discovery.Entry, len(all))
	for i, c := range all {
		entries[i] = discovery.Entry{Place: "node " + d.root + "/" + c.name, ID: c.name, Text: c.data}
	}
	return d.reader.Nodes(entries), nil
}

// Close ends the connection, and with it the session and its entries. It may be
// repeated.
func (d *Directory) Close() error {
	d.close()
	return nil
}
