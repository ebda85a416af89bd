package sqldb

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf/segment"
)

// metaCluster is the row of leaf_meta that holds the cluster's ID.
const metaCluster = "cluster_id"

// clusterValue is the ID of the cluster within a statement.
const clusterValue = "(SELECT value FROM leaf_meta WHERE name = '" + metaCluster + "')"

// identity says which database a Store belongs to. If the URL leads to another database, or other
// data is loaded into it, the Store takes no range while it names another cluster (rule V).
type identity struct {
	id      atomic.Pointer[string]          // the cluster's ID as this node read it first; nil: it read none
	binding atomic.Pointer[segment.Binding] // which part of which tag rule it is; nil: not bound yet

	// readable is whether a Bind, or a reading of the ID, has found leaf_meta. From then on each statement reads it: if it
	// did not, another rule could be recorded unseen when the table or the right to read it is lost.
	readable atomic.Bool

	// alone is whether it is that of a registry outside the store: its ID need not be that of a cluster, and nothing is known of
	// tags there.
	alone bool
}

func (i *identity) get() string {
	if id := i.id.Load(); id != nil {
		return *id
	}
	return ""
}

// asked returns the ID that statements compare, "" if they compare none.
func (i *identity) asked() string {
	if i.isBlind() {
		return ""
	}
	return i.get()
}

// check returns a *segment.ClusterError if found is the ID of another cluster. A database
// without an ID is not another cluster's: the row of leaf_meta was deleted, or could not be made.
func (i *identity) check(found string) error {
	if own := i.get(); own != "" && found != "" && found != own {
		return &segment.ClusterError{Own: own, Found: found}
	}
	return nil
}

// settle compares the ID that the database has, "" for none, and remembers the first one.
func (i *identity) settle(found string) error {
	if found != "" {
		i.id.CompareAndSwap(nil, &found)
	}
	return i.check(found)
}

// Expect says which cluster this node has taken ranges from before, in an earlier process.
// Call it before any other method. The error is a *segment.ClusterError if the Store has
// read another ID already.
func (s *Store) Expect(id string) error {
	s.identity.id.CompareAndSwap(nil, &id)
	if read := s.identity.get(); read != id {
		return &segment.ClusterError{Own: id, Found: read}
	}
	return nil
}

// KnownCluster returns the ID that this Store compares, "" if it knows none yet. It does not
// ask the database.
func (s *Store) KnownCluster() string { return s.identity.get() }

// ClusterID returns the ID of the cluster that uses this database as its first: 32 hex
// digits by chance, made by the first call of any node. It is "" for a database without
// leaf_meta, which only the Java server has set up. A copy of a database has the ID of the
// original. The Store asks the database once: Bind and Reserve compare what they find
// later. Every error may be retried.
func (s *Store) ClusterID(ctx context.Context) (id string, err error) {
	if id := s.identity.get(); id != "" {
		return id, nil
	}
	defer s.done(ctx, time.Now(), &err, "read the cluster's ID")
	l, err := s.detect(ctx)
	if err != nil || !l.meta {
		return "", err
	}
	found, err := s.storedCluster(ctx, s.write)
	if err == nil && found == "" {
		found, err = s.putCluster(ctx)
	}
	if err != nil {
		return "", err
	}
	s.identity.readable.Store(true)
	return found, s.identity.settle(found)
}

// SameCluster returns a *segment.ClusterError if the database is another cluster's. It
// writes nothing. A database that has no ID, or no table for it, is no other cluster's.
func (s *Store) SameCluster(ctx context.Context) error {
	_, err := s.detectSame(ctx)
	return err
}

// detectSame is SameCluster, and reports whether the database has leaf_meta.
func (s *Store) detectSame(ctx context.Context) (meta bool, err error) {
	defer s.done(ctx, time.Now(), &err, "compare the cluster's ID")
	l, err := s.detect(ctx)
	if err != nil || !l.meta {
		return false, err
	}
	found, err := s.storedCluster(ctx, s.read)
	if err == nil {
		err = s.identity.check(found)
	}
	return true, err
}

// putCluster writes the ID where the database has none, and returns what it has then. It
// is the ID that this Store has read before: the row was deleted under a running node,
// and the next node that starts must not make another one.
func (s *Store) putCluster(ctx context.Context) (id string, err error) {
	if id = s.identity.get(); id == "" {
		id = segment.NewClusterID()
	}
	err = s.transact(ctx, func(conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, s.sql.insertName, metaCluster, id)
		return err
	})
	if err != nil && s.dialect.kindOf(err) != kindDuplicate { // else another node was faster
		return "", fmt.Errorf("make the cluster's ID in leaf_meta: %w", err)
	}
	return s.storedCluster(ctx, s.write)
}

// Identify returns the ID of the cluster of the database, for its registry. Where it has none it records one first, unless id
// is "": id, or for Store.Records the one that ClusterID would. Where nothing is found, also by a user without a right to
// leaf_meta, it is the ID that this process has read before, or that Expect said. In the database of another cluster it is a
// *segment.ClusterError. Every error may be retried.
//
// A database may be reached by a name that leads to two servers, or a pooler that has two: this answer says nothing of the
// next call. See Expect.
func (r *Records) Identify(ctx context.Context, id string) (found string, err error) {
	defer r.done(ctx, time.Now(), &err, "read the ID of the registry")
	s := r.store
	found, err = s.storedCluster(ctx, s.read)
	switch {
	case err != nil || found != "" || id == "":
	case s.identity.alone:
		found, err = s.record(ctx, metaCluster, id)
	default: // id may be that of another registry, which this node used before
		found, err = s.putCluster(ctx)
	}
	if kind := s.dialect.kindOf(err); err != nil && (kind.missing() || kind == kindDenied || kind == kindReadOnly) {
		if s.identity.alone { // else a Store would take ranges without what says whose the database is (rule K)
			s.identity.readable.Store(false)
		}
		return s.identity.get(), nil
	}
	if err == nil {
		s.identity.readable.Store(true)
		err = s.identity.settle(found)
	}
	return cmp.Or(found, s.identity.get()), err
}

// Expect says which ID the registry has that this node uses. From then on, what is read of the namespace, the numbers and the
// peers is compared with it in the same transaction, and what is written names a namespace that was read so: beside another ID
// the call returns a *segment.ClusterError. A user without a right to leaf_meta compares nothing.
func (r *Records) Expect(id string) error { return r.store.Expect(id) }

// storedCluster returns the ID that the database has, "" if it has none.
func (s *Store) storedCluster(ctx context.Context, q querier) (id string, err error) {
	return s.readCluster(ctx, q, s.sql.cluster)
}

// readCluster is storedCluster by one of the statements for it.
func (s *Store) readCluster(ctx context.Context, q querier, query string) (id string, err error) {
	_, err = queryRow(ctx, q, query, nil, []any{&id})
	if err != nil {
		return "", fmt.Errorf("read the cluster's ID in leaf_meta: %w", err)
	}
	return id, nil
}
