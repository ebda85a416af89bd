package sqldb

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/leaf-idgen/leaf/segment"
)

// owner says which cluster a database belongs to, and which part of which tag rule it is, by its
// table leaf_meta. Each load reads it in its transaction, after the row is locked, and takes no
// range from a database that has another owner now.
type owner struct{ cluster, rule, store sql.NullString }

// The columns with which a statement reads the owner, and those in their place where leaf_meta is
// not read.
const (
	ownerValues = clusterValue + ", (SELECT value FROM leaf_meta WHERE name = '" + metaRule + "')" +
		", (SELECT value FROM leaf_meta WHERE name = '" + metaStore + "')"
	noOwner = "NULL, NULL, NULL"
)

func (o *owner) dest() []any { return []any{&o.cluster, &o.rule, &o.store} }

// ErrUnbound says that the database has no record of a tag rule: it is part of none, and its rows may
// be copies of rows in another database. It is a segment.ErrSchema.
var ErrUnbound = fmt.Errorf("%w: no tag rule is recorded in the database, and its rows may be old copies of rows in another one; run, with the settings of this node: leaf schema apply", segment.ErrSchema)

// checkOwner returns a *segment.ClusterError, segment.ErrRule or ErrUnbound if o is not this
// node's.
func (i *identity) checkOwner(o owner) error {
	return i.checkOwnerBy(o, i.binding.Load())
}

// checkOwnerBy is checkOwner by a binding; nil: none is compared.
func (i *identity) checkOwnerBy(o owner, own *segment.Binding) error {
	if err := i.check(o.cluster.String); err != nil || own == nil {
		return err
	}
	var found *segment.Binding
	if o.rule.Valid {
		found = &segment.Binding{Store: o.store.String, Rule: o.rule.String}
	}
	return checkBinding(*own, found)
}

// checkBinding returns segment.ErrRule if found is another binding, and ErrUnbound if there is
// none. The only database of a node needs none: the original has no table for it.
func checkBinding(own segment.Binding, found *segment.Binding) error {
	switch {
	case found == nil && own.Rule != "":
		return ErrUnbound
	case found != nil && !own.Same(*found):
		return otherRule(own, *found)
	}
	return nil
}

func otherRule(own, found segment.Binding) error {
	return fmt.Errorf("%w: the database belongs to %s, this node takes it for %s", segment.ErrRule, describe(found), describe(own))
}

func describe(b segment.Binding) string {
	if b.Rule == "" {
		return "the only database"
	}
	return fmt.Sprintf("store %q of rule %q", b.Store, b.Rule)
}

// isBlind reports whether loads have no leaf_meta to look at.
func (i *identity) isBlind() bool { return !i.readable.Load() }

// sameOwner is checkOwner within a transaction that changes a row.
func (s *Store) sameOwner(ctx context.Context, conn *sql.Conn) error {
	return s.ownedBy(ctx, conn, s.identity.binding.Load())
}

// ownedBy is sameOwner by a binding; nil: none is compared.
func (s *Store) ownedBy(ctx context.Context, conn *sql.Conn, b *segment.Binding) error {
	if s.identity.isBlind() {
		return nil
	}
	var found owner
	if _, err := queryRow(ctx, conn, s.sql.owner, nil, found.dest()); err != nil {
		return fmt.Errorf("read whose the database is: %w", err)
	}
	return s.identity.checkOwnerBy(found, b)
}

// sameCluster returns a *segment.ClusterError if q, one connection, leads to the database of
// another cluster. query is cluster, or ofChange.
func (s *Store) sameCluster(ctx context.Context, q querier, query string) error {
	if s.identity.asked() == "" {
		return nil
	}
	found, err := s.readCluster(ctx, q, query)
	if err != nil && s.dialect.kindOf(err).missing() {
		return fmt.Errorf("%w: %s", segment.ErrSchema, s.metaGone())
	}
	if err != nil {
		return err
	}
	return s.identity.check(found)
}
