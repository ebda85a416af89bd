package sqldb

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/leaf-idgen/leaf/segment"
)

// owner is whose a database is, by its table leaf_meta: of which cluster, and which part of
// which tag rule. Each load reads it in its transaction, after the row is locked, and takes no
// range of a database that became another's.
type owner struct{ cluster, rule, store sql.NullString }

// What a statement reads of the owner, and what it reads where it may not ask.
const (
	ownerValues = clusterValue + ", (SELECT value FROM leaf_meta WHERE name = '" + metaRule + "')" +
		", (SELECT value FROM leaf_meta WHERE name = '" + metaStore + "')"
	noOwner = "NULL, NULL, NULL"
)

func (o *owner) dest() []any { return []any{&o.cluster, &o.rule, &o.store} }

// checkOwner returns a *segment.ClusterError, or segment.ErrRule, if o is another one. A database
// without a binding is no other one's: its rows of leaf_meta were deleted, or could not be made.
func (i *identity) checkOwner(o owner) error {
	if err := i.check(o.cluster.String); err != nil || !o.rule.Valid {
		return err
	}
	return i.checkRule(segment.Binding{Store: o.store.String, Rule: o.rule.String})
}

// checkRule returns segment.ErrRule if found is not the binding of this node.
func (i *identity) checkRule(found segment.Binding) error {
	if own := i.binding.Load(); own != nil && !own.Same(found) {
		return otherRule(*own, found)
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

// mayBeBlind reports whether loads may go on without a look at leaf_meta. A node with several
// databases may not: its rule can change while it runs.
func (i *identity) mayBeBlind() bool {
	own := i.binding.Load()
	return own == nil || own.Rule == ""
}

// unreadable reports whether err is that something, perhaps leaf_meta, is missing or may not be used.
func (s *Store) unreadable(err error) bool {
	kind := s.dialect.kindOf(err)
	return kind.missing() || kind == kindDenied
}

// goBlind lets loads go on without a look at leaf_meta until the next Bind, if leaf_meta is what
// cannot be read. Of another table or right that was missing for a moment nothing follows.
func (s *Store) goBlind(ctx context.Context) bool {
	if !s.identity.mayBeBlind() || !s.identity.readable.Load() {
		return false
	}
	_, err := s.binding(ctx, s.read, s.sql.meta)
	return err != nil && s.unreadable(err) && s.identity.readable.Swap(false)
}

// sameOwner is checkOwner within a transaction that changes a row.
func (s *Store) sameOwner(ctx context.Context, conn *sql.Conn) error {
	if !s.identity.readable.Load() {
		return nil
	}
	var found owner
	if _, err := queryRow(ctx, conn, s.sql.owner, nil, found.dest()); err != nil {
		return fmt.Errorf("read whose the database is: %w", err)
	}
	return s.identity.checkOwner(found)
}
