package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/segment"
)

// An entry that ended keepNodes ago is deleted by the node that puts one next: at most
// sweptAtOnce of them, and at most once in sweepEvery.
const (
	keepNodes   = time.Hour
	sweptAtOnce = 100
)

// directoryConns bounds the connections of a directory to a server.
const directoryConns = 2

// Directory is the directory of nodes in a database: the table leaf_node, whose rows
// end by the clock of the database. It implements discovery.Directory. Where the table
// is missing every call is segment.ErrSchema, whose text names the command that makes
// it; an embedded database gets it with the first Put. All methods are safe for
// concurrent use.
type Directory struct {
	store    *Store
	own      bool // the store is ours to close
	reader   *discovery.Reader
	sql      *directoryStatements
	sweepDue atomic.Int64 // in ns since store.born
	closed   atomic.Bool
}

var _ discovery.Directory = (*Directory)(nil)

// errDirectoryClosed is returned by calls after Close.
var errDirectoryClosed = errors.New("the directory is closed")

// OpenDirectory opens the directory in the database of a store URL, see Open. It does
// not connect.
func OpenDirectory(url string, cfg Config) (*Directory, error) {
	if cfg.MaxConns == 0 {
		cfg.MaxConns = directoryConns
	}
	s, err := Open(url, cfg)
	if err != nil {
		return nil, err
	}
	return newDirectory(s, true), nil
}

// Directory returns the directory in the same database. With an embedded one it shares
// the connections of the store and must be used before the store is closed only; with a
// server it opens a few of its own, so that no tag whose row is locked keeps an entry
// from being renewed.
func (s *Store) Directory() (*Directory, error) {
	if s.dialect.embedded {
		return newDirectory(s, false), nil
	}
	cfg := s.cfg
	cfg.MaxConns = directoryConns
	other, err := openTarget(s.target, s.login, cfg)
	if err != nil {
		return nil, err
	}
	other.identity = s.identity
	return newDirectory(other, true), nil
}

func newDirectory(s *Store, own bool) *Directory {
	return &Directory{store: s, own: own, reader: discovery.NewReader(s.cfg.Logger), sql: &s.dialect.directory}
}

// directoryStatements are the texts for leaf_node.
type directoryStatements struct {
	put     string // id, entry, ttl in ms
	remove  string // id
	list    string
	expired string // ids: how long ago in ms
	sweep   string // id, how long ago in ms
}

func (d *dialect) directoryStatements() directoryStatements {
	return directoryStatements{
		put: d.bind("INSERT INTO leaf_node (id, entry, expires, update_time) VALUES (?, ?, " + d.now + " + ?, CURRENT_TIMESTAMP)" +
			d.onConflict("id", "entry", "expires", "update_time")),
		remove:  d.bind("DELETE FROM leaf_node WHERE id = ?"),
		list:    "SELECT id, entry FROM leaf_node WHERE expires > " + d.now,
		expired: d.bind(fmt.Sprintf("SELECT id FROM leaf_node WHERE expires < %s - ? LIMIT %d", d.now, sweptAtOnce)),
		sweep:   d.bind("DELETE FROM leaf_node WHERE id = ? AND expires < " + d.now + " - ?"),
	}
}

// Put implements discovery.Directory.
func (d *Directory) Put(ctx context.Context, n discovery.Node, ttl time.Duration) (err error) {
	if err := discovery.CheckPut(n, ttl); err != nil {
		return err
	}
	defer d.done(ctx, time.Now(), &err, "put node %s", n.ID)
	put := func() error { return d.exec(ctx, d.sql.put, n.ID, n.Encode(), ttl.Milliseconds()) }
	err = put()
	if d.store.dialect.embedded && err != nil && d.store.dialect.kindOf(err).missing() && d.store.isUnmade() {
		if _, err := d.store.createTables(ctx); err != nil {
			return err
		}
		err = put()
	}
	if err != nil {
		return err
	}
	now, due := int64(time.Since(d.store.born)), d.sweepDue.Load()
	if now >= due && d.sweepDue.CompareAndSwap(due, now+int64(sweepEvery)) {
		if err := d.sweep(ctx); err != nil { // the entry is there all the same
			d.store.cfg.Logger.Debug("old entries of leaf_node could not be deleted", "store", d.store.Redacted(), "error", err)
		}
	}
	return nil
}

// sweep deletes entries that ended long ago. It looks for them first, because a DELETE
// that searches would lock the rows of nodes that are there.
func (d *Directory) sweep(ctx context.Context) error {
	var gone []string
	err := d.query(ctx, d.sql.expired, []any{keepNodes.Milliseconds()}, func(rows *sql.Rows) error {
		var id string
		err := rows.Scan(&id)
		gone = append(gone, id)
		return err
	})
	for _, id := range gone {
		err = errors.Join(err, d.exec(ctx, d.sql.sweep, id, keepNodes.Milliseconds()))
	}
	return err
}

// Remove implements discovery.Directory.
func (d *Directory) Remove(ctx context.Context, id string) (err error) {
	if err := discovery.CheckID(id); err != nil {
		return err
	}
	defer d.done(ctx, time.Now(), &err, "remove node %s", id)
	return d.exec(ctx, d.sql.remove, id)
}

// List implements discovery.Directory.
func (d *Directory) List(ctx context.Context) (nodes []discovery.Node, err error) {
	defer d.done(ctx, time.Now(), &err, "list the nodes")
	var found []discovery.Entry
	err = d.query(ctx, d.sql.list, nil, func(rows *sql.Rows) error {
		var e discovery.Entry
		err := rows.Scan(&e.ID, &e.Text)
		e.Place = d.store.Redacted() + " leaf_node id=" + e.ID
		found = append(found, e)
		return err
	})
	if err != nil {
		return nil, err
	}
	return d.reader.Nodes(found), nil
}

func (d *Directory) exec(ctx context.Context, query string, args ...any) error {
	if d.closed.Load() {
		return errDirectoryClosed
	}
	return d.store.exec(ctx, query, args...)
}

// query calls each with the rows of a query.
func (d *Directory) query(ctx context.Context, query string, args []any, each func(rows *sql.Rows) error) error {
	if d.closed.Load() {
		return errDirectoryClosed
	}
	return d.store.look(ctx, func(q querier) error { return eachRow(ctx, q, query, args, each) })
}

// done finishes a call as Store.done does.
func (d *Directory) done(ctx context.Context, start time.Time, err *error, step string, args ...any) {
	d.store.finish(ctx, start, err, d.explain, step, args...)
}

func (d *Directory) explain(err error) error {
	if d.store.dialect.kindOf(err).missing() && !errors.Is(err, segment.ErrSchema) {
		return d.store.schemaError("the database has no usable table leaf_node", err)
	}
	return err
}

// Close implements discovery.Directory. A store that is shared stays open.
func (d *Directory) Close() error {
	if d.closed.Swap(true) || !d.own {
		return nil
	}
	return d.store.Close()
}
