package sqldb

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// Names of the rows of leaf_meta that hold a binding.
const (
	metaRule  = "tag_rule"
	metaStore = "store_name"
)

// Bind implements segment.Store. A binding without a rule is recorded, too, where
// leaf_meta is there and may be written, so that a node which takes the database for
// one of several is refused; but the only database of a node needs no table of ours.
func (s *Store) Bind(ctx context.Context, b segment.Binding) (err error) {
	return s.bind(ctx, b, true)
}

// Verify is Bind without recording or making anything: a command that manages rows need not
// claim the database for its own division of tags, and a mistyped path is no new database.
func (s *Store) Verify(ctx context.Context, b segment.Binding) error { return s.bind(ctx, b, false) }

func (s *Store) bind(ctx context.Context, b segment.Binding, record bool) (err error) {
	defer s.done(ctx, time.Now(), &err, "bind %s", s.Redacted())
	if s.dialect.embedded && record {
		if _, err := s.createTables(ctx); err != nil {
			return err
		}
	}
	l, err := s.detect(ctx)
	if err != nil {
		return err
	}
	if err := s.dialect.check(ctx, s, "leaf_alloc"); err != nil {
		return err
	}
	if err := s.checkKey(ctx); err != nil {
		return err
	}
	s.identity.readable.Store(l.meta)
	switch {
	case l.meta:
		if err := s.bindCluster(ctx, record); err != nil {
			return err
		}
		return s.bindRule(ctx, b, record)
	case b.Rule != "":
		return s.schemaError("several databases need the table leaf_meta", nil)
	}
	return nil
}

// checkKey refuses a table without a key that has two rows of one tag: each would
// hand out the other's numbers.
func (s *Store) checkKey(ctx context.Context) error {
	var tag string
	ok, err := queryRow(ctx, s.read, "SELECT biz_tag FROM leaf_alloc GROUP BY biz_tag HAVING COUNT(*) > 1 LIMIT 1", nil, []any{&tag})
	if err != nil {
		return fmt.Errorf("look for tags with two rows: %w", err)
	}
	if ok {
		return fmt.Errorf("%w: leaf_alloc has more than one row for tag %q; remove all but the one with the highest max_id and make biz_tag the primary key", segment.ErrSchema, tag)
	}
	return nil
}

// bindCluster comes before bindRule: nothing is recorded in the database of another
// cluster. That an ID cannot be recorded stops no node.
func (s *Store) bindCluster(ctx context.Context, record bool) error {
	found, err := s.storedCluster(ctx, s.read)
	if err == nil && found == "" && record {
		if found, err = s.putCluster(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Logger.Debug("the cluster's ID could not be written to leaf_meta", "store", s.Redacted(), "error", err)
			err = nil
		}
	}
	if err != nil {
		return err
	}
	return s.identity.settle(found)
}

func (s *Store) bindRule(ctx context.Context, b segment.Binding, record bool) error {
	found, err := s.binding(ctx, s.read, s.sql.meta)
	if err == nil && found == nil && record {
		err = s.transact(ctx, func(conn *sql.Conn) error { return s.insertBinding(ctx, conn, b) })
		switch {
		case err == nil, s.dialect.kindOf(err) == kindDuplicate: // another node was faster
			found, err = s.binding(ctx, s.write, s.sql.meta)
		case b.Rule == "" && ctx.Err() == nil:
			s.cfg.Logger.Debug("that this is the only database is not recorded", "store", s.Redacted(), "error", err)
			err = nil
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("binding: %w", err)
	case found == nil, *found == b, found.Rule == "" && b.Rule == "":
		return nil
	}
	return fmt.Errorf("%w: the database belongs to %s, this node takes it for %s", segment.ErrRule, describe(*found), describe(b))
}

func describe(b segment.Binding) string {
	if b.Rule == "" {
		return "the only database"
	}
	return fmt.Sprintf("store %q of rule %q", b.Store, b.Rule)
}

// RuleChange is the change of the tag rule of a database by one command. Between Unbind and the
// end of the change no node binds the database. If another command begins a change meanwhile,
// that one alone goes on: whatever this one found out may be wrong by now.
type RuleChange struct {
	s      *Store
	before *segment.Binding // nil: none
	mark   segment.Binding  // of this change; no node has it
}

const unboundRule = "none: leaf schema apply --accept-rule is changing it "

// Unbind begins a change of the rule. After an error the rule may have been taken away, unless
// the change is nil.
func (s *Store) Unbind(ctx context.Context) (c *RuleChange, err error) {
	defer s.done(ctx, time.Now(), &err, "take the rule away")
	before, err := s.binding(ctx, s.write, s.sql.meta)
	if err != nil {
		return nil, err
	}
	c = &RuleChange{s, before, segment.Binding{Store: "-", Rule: unboundRule + rand.Text()}}
	return c, s.replaceBinding(ctx, before, &c.mark)
}

// Accept ends the change and records b. It is the operator's word that the tags were moved to
// where the new rule expects them. A binding without a rule is recorded as well: a node that
// runs with the old rule would take a record that is gone for one that is still to be made.
func (c *RuleChange) Accept(ctx context.Context, b segment.Binding) (err error) {
	defer c.s.done(ctx, time.Now(), &err, "accept rule")
	return c.s.replaceBinding(ctx, &c.mark, &b)
}

// Undo ends the change and puts the binding back that the database had. Error: leaf.ErrConflict
// if that was the mark of a change that did not end, so that still no node binds the database.
func (c *RuleChange) Undo(ctx context.Context) (err error) {
	defer c.s.done(ctx, time.Now(), &err, "put the rule back")
	if err := c.s.replaceBinding(ctx, &c.mark, c.before); err != nil {
		return err
	}
	if c.before != nil && strings.HasPrefix(c.before.Rule, unboundRule) {
		return fmt.Errorf("%w: the database had no rule before, because another leaf schema apply --accept-rule runs or was interrupted. "+
			"No node starts until the command ends well: run it with the new tag rule, or with the old one to go back to that", leaf.ErrConflict)
	}
	return nil
}

// replaceBinding records to in place of from; nil is no binding. Error: leaf.ErrConflict if the
// database has another one meanwhile.
func (s *Store) replaceBinding(ctx context.Context, from, to *segment.Binding) error {
	changed := fmt.Errorf("%w: another command or node is recording its rule; when it has ended, try again", leaf.ErrConflict)
	err := s.again(ctx, func() error {
		return s.transact(ctx, func(conn *sql.Conn) error {
			found, err := s.binding(ctx, conn, s.sql.lockMeta)
			switch {
			case err != nil, equal(found, to): // or it was done before, and the answer was lost
				return err
			case !equal(found, from):
				return changed
			}
			if _, err := conn.ExecContext(ctx, s.sql.deleteMeta); err != nil || to == nil {
				return err
			}
			return s.insertBinding(ctx, conn, *to)
		})
	})
	if err != nil && s.dialect.kindOf(err) == kindDuplicate {
		return changed
	}
	return err
}

func equal(a, b *segment.Binding) bool { return a == b || a != nil && b != nil && *a == *b }

// insertBinding writes both rows with one statement, so that no reader meets half a
// binding.
func (s *Store) insertBinding(ctx context.Context, conn *sql.Conn, b segment.Binding) error {
	_, err := conn.ExecContext(ctx, s.sql.insertMeta, metaRule, b.Rule, metaStore, b.Store)
	return err
}

// binding returns the recorded binding, nil if there is none. query is meta, or lockMeta.
func (s *Store) binding(ctx context.Context, q querier, query string) (b *segment.Binding, err error) {
	err = eachRow(ctx, q, query, nil, func(rows *sql.Rows) error {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return err
		}
		if b == nil && (name == metaRule || name == metaStore) {
			b = &segment.Binding{}
		}
		switch name {
		case metaRule:
			b.Rule = value
		case metaStore:
			b.Store = value
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return b, nil
}
