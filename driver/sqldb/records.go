package sqldb

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/worker"
)

// recordsConns bounds the connections of a registry to a server. Three calls of a
// node can run at a time: a renewal, an announcement and a list for an operator.
const recordsConns = 4

// Records is a registry of worker IDs in a database: worker.NewPool makes a
// worker.Registry of it. It implements worker.Records. All methods are safe for
// concurrent use.
//
// A database holds one namespace. A number is two rows: its claim in leaf_worker and
// its time bound T in leaf_worker_bound. Both are written in one transaction, and
// each only if it is, column by column, what the writer saw: the version of a record
// is its content, and every write adds a random word to it. The claim repeats T, so
// that T is lost only where both rows are.
type Records struct {
	store   *Store
	own     bool // the store is ours to close
	sql     *recordStatements
	rule    *segment.Binding // what the node takes the database for; nil: it does not compare that
	checked atomic.Bool      // the tables are such that a transaction holds

	sweepDue atomic.Int64 // when expired peers are deleted next, in ns since store.born
}

var _ worker.Records = (*Records)(nil)

// OpenRecords opens the registry in the database of a store URL, see Open. It does
// not connect.
func OpenRecords(url string, cfg Config) (*Records, error) {
	if cfg.MaxConns == 0 {
		cfg.MaxConns = recordsConns
	}
	s, err := Open(url, cfg)
	if err != nil {
		return nil, err
	}
	s.identity.alone = true
	return newRecords(s, true, &s.dialect.records), nil
}

// Records returns the registry in the same database. With an embedded one it shares
// the connections of the store, because a file has one writer, and it must be used
// before the store is closed only. With a server it opens a few of its own, so that
// no tag whose row is locked ever keeps a renewal waiting.
func (s *Store) Records() (*Records, error) { return s.recordsIn(&s.dialect.records, idleRows) }

func (s *Store) recordsIn(tables *recordStatements, bounds idle) (*Records, error) {
	if s.dialect.embedded {
		return newRecords(s, false, tables), nil
	}
	cfg := s.cfg
	cfg.MaxConns, cfg.idle = recordsConns, bounds
	other, err := openTarget(s.target, s.login, cfg)
	if err != nil {
		return nil, err
	}
	other.identity = s.identity
	return newRecords(other, true, tables), nil
}

// OfRule says which part of which tag rule the node takes the database for. The nodes of a rule have their worker IDs from its
// first database, and by another rule that may be another one, which gives the same numbers. From then on a claim and a renewal
// compare the rule in their own transactions, as a load does. Beside another rule they are a segment.ErrRule, and without any in
// one of several databases ErrUnbound (rule K). Call it before any other method.
func (r *Records) OfRule(b segment.Binding) {
	r.rule = &b
}

// sameRule is the comparison of OfRule. A node that was suspended or cut off while another rule was recorded raises no T by the
// old one: it has read its clock before.
func (r *Records) sameRule(ctx context.Context, conn *sql.Conn) error {
	if r.rule == nil {
		return nil
	}
	return r.store.ownedBy(ctx, conn, r.rule)
}

func newRecords(s *Store, own bool, tables *recordStatements) *Records {
	return &Records{store: s, own: own, sql: tables}
}

// Redacted returns the URL of the database with xxxxx for the password.
func (r *Records) Redacted() string { return r.store.Redacted() }

// Info implements worker.Records.
func (r *Records) Info() worker.Info {
	return worker.Info{Name: r.store.dialect.name, Kind: worker.Leased, Shared: !r.store.dialect.embedded, Reset: "DELETE FROM " + r.sql.names}
}

// Prepare creates the file and the tables of an embedded database, as Bind does, and
// reports whether this process has made the file. If so, and if the file is in a data
// directory that this process has locked and no process has used before, no node can have
// used a number of it: the caller may declare the namespace new (worker.Registry.Init)
// before the first claim, which then need not wait. Elsewhere a file that is made may have
// been deleted while a process runs that has a number of it, and the claim must wait. With a
// server Prepare does nothing.
func (r *Records) Prepare(ctx context.Context) (created bool, err error) {
	defer r.done(ctx, time.Now(), &err, "prepare the registry")
	if !r.store.dialect.embedded {
		return false, nil
	}
	if _, err := r.store.createTables(ctx); err != nil {
		return false, err
	}
	return r.store.made.Load(), nil
}

// MissingFile is Store.MissingFile of the database.
func (r *Records) MissingFile() string { return r.store.MissingFile() }

// ClusterID is Store.ClusterID of the database.
func (r *Records) ClusterID(ctx context.Context) (string, error) { return r.store.ClusterID(ctx) }

// Namespace implements worker.Records.
func (r *Records) Namespace(ctx context.Context, want *worker.StoredNamespace) (stored *worker.StoredNamespace, err error) {
	if want != nil {
		if err := checkNamespace(want.Namespace); err != nil {
			return nil, err
		}
	}
	defer r.done(ctx, time.Now(), &err, "namespace")
	if err := r.check(ctx); err != nil {
		return nil, err
	}
	if stored, err = r.readNamespace(ctx); err != nil || want == nil || stored != nil && stored.Incarnation != "" {
		return stored, err
	}
	err = r.change(ctx, func(conn *sql.Conn) error {
		if err := r.sameRule(ctx, conn); err != nil {
			return err
		}
		if stored != nil { // made before there were incarnations: without one no claim would end with it, nor be counted
			return r.update(ctx, conn, r.sql.nameNamespace, rand.Text())
		}
		_, err := conn.ExecContext(ctx, r.sql.insertNamespace, want.Name, want.Fingerprint, want.IssueFrom, rand.Text(), want.Given)
		return err
	})
	if err != nil && !errors.Is(err, worker.ErrLost) && r.store.dialect.kindOf(err) != kindDuplicate { // these: another claimer was faster
		return nil, err
	}
	if stored, err = r.readNamespace(ctx); err == nil && stored == nil {
		err = errors.New("the row was written and is not there")
	}
	return stored, err
}

// readNamespace compares the ID of the cluster in the statement that reads the namespace: a pooler of transactions may send two
// statements of one connection to two servers. What is written names the incarnation, so a claim is made nowhere else.
func (r *Records) readNamespace(ctx context.Context) (*worker.StoredNamespace, error) {
	var n worker.StoredNamespace
	var cluster sql.NullString
	query, dest := r.sql.namespace, []any{&n.Name, &n.Fingerprint, &n.IssueFrom, &n.Incarnation, &n.Given}
	if r.store.identity.asked() != "" {
		query, dest = r.sql.ownNamespace, append(dest, &cluster)
	}
	var found bool
	err := r.look(ctx, func(q querier) (err error) {
		found, err = queryRow(ctx, q, query, nil, dest)
		return err
	})
	if err == nil && found {
		err = r.store.identity.check(cluster.String)
	}
	if err != nil || !found {
		return nil, err
	}
	return &n, nil
}

// Amend implements worker.Records.
func (r *Records) Amend(ctx context.Context, old, next worker.StoredNamespace) (err error) {
	defer r.done(ctx, time.Now(), &err, "amend the namespace")
	return r.transact(ctx, func(conn *sql.Conn) error {
		return r.update(ctx, conn, r.sql.amendNamespace, next.IssueFrom, next.Given, old.Incarnation, old.IssueFrom, old.Given)
	})
}

// admit expects the namespace in which a record was claimed, and counts a number that
// gets its first one. Its row comes before those of numbers, in every transaction.
func (r *Records) admit(ctx context.Context, conn *sql.Conn, rec worker.Record) error {
	switch {
	case rec.Incarnation == "":
		return nil
	case rec.Version == "":
		return r.update(ctx, conn, r.sql.count, rec.Incarnation)
	}
	var incarnation string
	found, err := queryRow(ctx, conn, r.sql.incarnation, nil, []any{&incarnation})
	if err == nil && (!found || incarnation != rec.Incarnation) {
		err = fmt.Errorf("%w: the namespace in which it was claimed is gone", worker.ErrLost)
	}
	return err
}

// check verifies, until it has succeeded once, that the database keeps a transaction, and that it is the one
// of an earlier process of this node. A node that starts may claim before segment mode has bound the database.
func (r *Records) check(ctx context.Context) error {
	if r.checked.Load() {
		return nil
	}
	several := r.rule != nil && r.rule.Rule != ""
	switch meta, err := r.store.detectSame(ctx); {
	case err != nil && (several || !errors.Is(err, segment.ErrSchema)):
		return err
	case err == nil && r.rule != nil && meta:
		r.store.identity.readable.Store(true) // segment mode may not have looked yet
	case several:
		return fmt.Errorf("several databases need the table leaf_meta: %w", ErrUnbound)
	}
	if err := r.store.dialect.check(ctx, r.store, r.sql.names, r.sql.bounds, r.sql.claims); err != nil {
		return err
	}
	r.checked.Store(true)
	return nil
}

// Close implements worker.Records. A store that is shared stays open.
func (r *Records) Close() error {
	if !r.own {
		return nil
	}
	return r.store.Close()
}

// transact is Store.transact, repeated while the server rolls it back because of a conflict with
// another transaction.
func (r *Records) transact(ctx context.Context, f func(conn *sql.Conn) error) error {
	return r.store.again(ctx, func() error { return r.store.transact(ctx, f) })
}

// The numbers and owners of another cluster are not this node's (rule V). What reads or makes the namespace, and what
// lists the records, compares the ID of the cluster. All other writes name the incarnation of a namespace that was
// read so, and change nothing where there is another one.

// look is Store.look, repeated as transact is.
func (r *Records) look(ctx context.Context, f func(q querier) error) error {
	return r.store.again(ctx, func() error { return r.store.look(ctx, f) })
}

// change is Store.change, repeated as transact is.
func (r *Records) change(ctx context.Context, f func(conn *sql.Conn) error) error {
	return r.store.again(ctx, func() error { return r.store.change(ctx, f) })
}

// done finishes a call as Store.done does, with the sentinels of package worker.
func (r *Records) done(ctx context.Context, start time.Time, err *error, step string, args ...any) {
	r.store.finish(ctx, start, err, r.explain, step, args...)
}

func (r *Records) explain(err error) error {
	switch {
	case errors.Is(err, worker.ErrSchema), errors.Is(err, worker.ErrForeign), errors.Is(err, worker.ErrLost):
		return err
	case errors.Is(err, segment.ErrRule), errors.Is(err, ErrUnbound):
		return fmt.Errorf("no worker ID is claimed or renewed in the first database of this node: nodes with another tag rule may have theirs in another database, where they get the same numbers: %w", err)
	case errors.Is(err, errTwoRows):
		// Without the key, two nodes could insert one number at once: to remove the second rows alone would hide that.
		return fmt.Errorf("%w: a table %[2]s… holds several rows of one key: its primary key is missing, as after a restore beside nodes that run. Stop all nodes that use the database, drop the tables %[2]s, %[3]s and %[4]s, run leaf schema apply, "+
			"which makes them anew, and start the nodes. Do not run leaf worker init: the numbers wait as after a wipe", worker.ErrSchema, r.sql.claims, r.sql.bounds, r.sql.names)
	case r.store.dialect.kindOf(err).missing(), errors.Is(err, segment.ErrSchema):
		do := r.store.applyCommand()
		if r.sql.claims == workerTable { // the database can be that of Java servers
			do = besideJava + "; if not, " + do
		}
		return fmt.Errorf("%w: the database has no usable tables %s…; %s (%w)", worker.ErrSchema, r.sql.claims, do, err)
	}
	return err
}
