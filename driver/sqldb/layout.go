package sqldb

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/worker"
)

// layout is what a database has of our tables. Only leaf_alloc must exist; its
// text column is for people and may have either name or be absent.
type layout struct {
	text    string // name of the text column, empty if there is none
	limits  bool   // leaf_tag_option has the columns of limits
	clients bool   // leaf_client_option exists
	meta    bool   // leaf_meta exists

	options *optionStatements // for its leaf_tag_option; nil: there is none

	seen time.Time

	read     string // statement: one row with its text, by tag
	readAll  string
	readPage string // a page of readAll: tag, number of rows
}

// complete reports whether nothing is left that a schema could still add.
func (l *layout) complete() bool {
	return l.options != nil && l.options.lacking == nil && l.limits && l.clients && l.meta
}

// detect finds out what the database has. It returns segment.ErrSchema if
// leaf_alloc is missing or lacks a column that the Java server needs, too.
func (s *Store) detect(ctx context.Context) (*layout, error) {
	s.awaitTables(ctx)
	columns, err := s.columns(ctx, "leaf_alloc")
	if err != nil {
		return nil, err
	}
	if columns == nil {
		return nil, s.schemaError("the database has no table leaf_alloc, or does not let this user read it"+s.lost(), nil)
	}
	for _, name := range []string{"biz_tag", "max_id", "step", "update_time"} {
		if !slices.Contains(columns, name) {
			return nil, s.schemaError(fmt.Sprintf("the table leaf_alloc has no column %s", name), nil)
		}
	}
	if err := s.checkTypes(ctx); err != nil {
		return nil, err
	}
	l := &layout{seen: time.Now()}
	for _, name := range []string{"description", "desc"} {
		if slices.Contains(columns, name) {
			l.text = name
			break
		}
	}
	if columns, err = s.columns(ctx, "leaf_tag_option"); err != nil {
		return nil, err
	}
	l.options = s.dialect.optionStatements(columns)
	l.limits = !slices.ContainsFunc(limitColumns, func(name string) bool { return !slices.Contains(columns, name) })
	for table, has := range map[string]*bool{"leaf_client_option": &l.clients, "leaf_meta": &l.meta} {
		columns, err := s.columns(ctx, table)
		if err != nil {
			return nil, err
		}
		*has = columns != nil
	}
	if err := s.kept(l); err != nil {
		return nil, err
	}
	if l.options == nil {
		if err := s.neverOrdered(ctx); err != nil {
			return nil, err
		}
	}
	text := "''"
	if l.text != "" {
		text = "COALESCE(" + s.dialect.column(l.text) + ", '')"
	}
	l.readAll = "SELECT biz_tag, max_id, step, " + s.dialect.epoch + ", " + text + " FROM leaf_alloc"
	l.read = s.dialect.bind(l.readAll + " WHERE biz_tag = ?")
	l.readPage = s.dialect.bind(l.readAll + " WHERE " + s.dialect.after + " ORDER BY " + s.dialect.bytes + " LIMIT ?")
	s.layout.Store(l)
	return l, nil
}

// isUnmade reports whether an embedded database may still need its tables. Those that were in its file, and are gone, are not
// made anew: they would be empty (see kept).
func (s *Store) isUnmade() bool { return !s.hadOptions.Load() || s.MissingFile() != "" }

// kept returns segment.ErrSchema if a table is gone that the database had. A database that never had it has no options and
// no limits. In one that had it, tags would lose their order, their period and their limits, and nothing would say so.
func (s *Store) kept(l *layout) error {
	for _, table := range []struct {
		name string
		has  bool
		had  *atomic.Bool
	}{
		{"leaf_tag_option", l.options != nil, &s.hadOptions},
		{"leaf_client_option", l.clients, &s.hadClients},
	} {
		if table.has {
			table.had.Store(true)
		} else if table.had.Load() {
			return fmt.Errorf("%w: the table %s is gone, or this user may not read it any more; this node goes on with what it has read. Give the right back, or restore the table from a backup: "+
				"a table that is made anew, as by leaf schema apply, is empty, and takes limits, order and periods from all tags", segment.ErrSchema, table.name)
		}
	}
	return nil
}

// neverOrdered returns segment.ErrSchema if nodes have used slots in a database without leaf_tag_option: the table is gone, or
// was hidden from this user, before this node has started. The node would issue tags in strict order beside their owners. What
// cannot be read of the slots says nothing: a database may have neither table.
func (s *Store) neverOrdered(ctx context.Context) error {
	var n worker.StoredNamespace
	used, err := queryRow(ctx, s.read, s.dialect.slots.namespace, nil, []any{&n.Name, &n.Fingerprint, &n.IssueFrom, &n.Incarnation, &n.Given})
	switch {
	case err == nil && used:
		return fmt.Errorf("%w: the table leaf_tag_option is gone, or this user may not read it, and nodes of this database issue tags in strict order (table leaf_slot_namespace): without it this node would issue such tags beside "+
			"their owners. Give the right to read it, or restore the table from a backup: a table that is made anew, as by leaf schema apply, is empty, and takes limits, order and periods from all tags", segment.ErrSchema)
	case err == nil, s.dialect.kindOf(err).missing(), s.dialect.kindOf(err) == kindDenied:
		return nil
	}
	return fmt.Errorf("look whether tags are in strict order: %w", err)
}

// columns returns the names of a table's columns in lower case, nil if there is
// no such table.
func (s *Store) columns(ctx context.Context, table string) (names []string, err error) {
	rows, err := s.read.QueryContext(ctx, "SELECT * FROM "+table+" LIMIT 0")
	if err == nil {
		defer rows.Close()
		names, err = rows.Columns()
	}
	if err == nil && !rows.Next() {
		err = rows.Err()
	}
	switch {
	case errors.Is(err, segment.ErrSchema): // the whole database is missing
		return nil, err
	case err != nil && s.dialect.kindOf(err).missing():
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read columns of %s: %w", table, err)
	}
	for i, name := range names {
		names[i] = strings.ToLower(name)
	}
	return names, nil
}

// withLayout calls f with what the database has. If f then meets a missing table
// or column, an administrator changed the schema in between: the layout is read anew and f
// is called once more, so f must not have written anything by then.
func (s *Store) withLayout(ctx context.Context, f func(l *layout) error) error {
	if l := s.layout.Load(); l != nil {
		err := f(l)
		if err == nil || !s.dialect.kindOf(err).missing() {
			return err
		}
	}
	l, err := s.detect(ctx)
	if err != nil {
		return err
	}
	return f(l)
}

// withOptions is withLayout for a change of options.
func (s *Store) withOptions(ctx context.Context, needed bool, f func(l *layout) error) error {
	if !needed {
		return s.withLayout(ctx, f)
	}
	if l := s.layout.Load(); l != nil && l.options != nil && l.options.lacking != nil {
		s.layout.CompareAndSwap(l, nil) // the column may have been added since
	}
	return s.withTables(ctx, func(l *layout) bool { return l.options != nil }, "options need the table leaf_tag_option", f)
}

// withTables is withLayout for a change that needs a table or columns that an older schema lacks.
// When the layout that was read lacks them, it is read again: an administrator may have created
// them since.
func (s *Store) withTables(ctx context.Context, has func(*layout) bool, missing string, f func(l *layout) error) error {
	if l := s.layout.Load(); l != nil && !has(l) {
		s.layout.CompareAndSwap(l, nil)
	}
	return s.withLayout(ctx, func(l *layout) error {
		if !has(l) {
			return s.schemaError(missing, nil)
		}
		return f(l)
	})
}
