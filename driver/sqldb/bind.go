package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// Names of the rows of leaf_meta that hold a binding.
const (
	metaRule  = "tag_rule"
	metaStore = "store_name"
)

// Bind implements segment.Store. A binding without a rule is not recorded, so
// that the only database of a node needs no table of ours; it is refused where
// another node recorded a rule.
func (s *Store) Bind(ctx context.Context, b segment.Binding) (err error) {
	defer s.done(ctx, time.Now(), &err, "bind %s", s.Redacted())
	if s.dialect.embedded {
		if _, err := s.createTables(ctx); err != nil {
			return err
		}
	}
	l, err := s.detect(ctx)
	if err != nil {
		return err
	}
	if err := s.dialect.check(ctx, s); err != nil {
		return err
	}
	if err := s.checkKey(ctx); err != nil {
		return err
	}
	switch {
	case l.meta:
		return s.bindRule(ctx, b)
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

func (s *Store) bindRule(ctx context.Context, b segment.Binding) error {
	found, err := s.binding(ctx, s.read)
	if err == nil && found.Rule == "" && b.Rule != "" {
		err = s.transact(ctx, func(conn *sql.Conn) error { return s.insertBinding(ctx, conn, b) })
		if err == nil || s.dialect.kindOf(err) == kindDuplicate { // another node was faster
			found, err = s.binding(ctx, s.write)
		}
	}
	switch {
	case err != nil:
		return fmt.Errorf("binding: %w", err)
	case found == b || found.Rule == "" && b.Rule == "":
		return nil
	}
	return fmt.Errorf("%w: the database belongs to %s, this node takes it for %s", segment.ErrRule, describe(found), describe(b))
}

func describe(b segment.Binding) string {
	if b.Rule == "" {
		return "the only database"
	}
	return fmt.Sprintf("store %q of rule %q", b.Store, b.Rule)
}

// AcceptRule records b in place of whatever binding the database has. It is the
// operator's word that the tags were moved to where the new rule expects them. A
// binding without a rule removes the record.
func (s *Store) AcceptRule(ctx context.Context, b segment.Binding) (err error) {
	defer s.done(ctx, time.Now(), &err, "accept rule")
	l, err := s.detect(ctx)
	if err != nil {
		return err
	}
	if !l.meta {
		if b.Rule == "" {
			return nil
		}
		return s.schemaError("several databases need the table leaf_meta", nil)
	}
	err = s.transact(ctx, func(conn *sql.Conn) error {
		if _, err := conn.ExecContext(ctx, s.sql.deleteMeta); err != nil {
			return err
		}
		if b.Rule == "" {
			return nil
		}
		return s.insertBinding(ctx, conn, b)
	})
	if err != nil && s.dialect.kindOf(err) == kindDuplicate {
		return fmt.Errorf("%w: another node is recording its rule, try again: %w", leaf.ErrConflict, err)
	}
	return err
}

// insertBinding writes both rows with one statement, so that nobody meets half a
// binding.
func (s *Store) insertBinding(ctx context.Context, conn *sql.Conn, b segment.Binding) error {
	_, err := conn.ExecContext(ctx, s.sql.insertMeta, metaRule, b.Rule, metaStore, b.Store)
	return err
}

// binding returns the recorded binding, zero if there is none.
func (s *Store) binding(ctx context.Context, q querier) (b segment.Binding, err error) {
	rows, err := q.QueryContext(ctx, s.sql.meta)
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return segment.Binding{}, err
		}
		switch name {
		case metaRule:
			b.Rule = value
		case metaStore:
			b.Store = value
		}
	}
	return b, rows.Err()
}
