package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// Lookup implements segment.Store. A row without options is read twice: the tag may have been deleted, with its options, since
// the first statement, and be made again with others before the node loads.
func (s *Store) Lookup(ctx context.Context, tag string) (row segment.Row, err error) {
	if err := leaf.ValidateTag(tag); err != nil {
		return row, err
	}
	defer s.done(ctx, time.Now(), &err, "look up tag %q", tag)
	err = s.lookLayout(ctx, func(q querier, l *layout) error {
		var found bool
		for range 2 {
			if row, err = s.readOne(ctx, q, l, tag); err != nil || l.options == nil {
				return err
			}
			if row.Options, found, err = s.readOptions(ctx, q, l, tag); err != nil || found {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return segment.Row{}, err
	}
	return row, nil
}

// readOne reads a row without its options.
func (s *Store) readOne(ctx context.Context, q querier, l *layout, tag string) (segment.Row, error) {
	var found record
	ok, err := queryRow(ctx, q, l.read, []any{tag}, found.dest())
	switch {
	case err != nil && s.dialect.kindOf(err) == kindBadText:
		// The name, or another column of its row? This read looks at the name only.
		if _, nameErr := s.readRow(ctx, q, tag); nameErr != nil {
			return segment.Row{}, nameErr
		}
		return segment.Row{}, err
	case errors.Is(err, errUnreadable):
		return segment.Row{}, fmt.Errorf("%w: %w", leaf.ErrInvalidRow, err)
	case err != nil:
		return segment.Row{}, err
	case !ok:
		return segment.Row{}, leaf.ErrUnknownTag
	case found.row.Tag != tag:
		return segment.Row{}, fmt.Errorf("%w: the table compares %q as equal, but it is another tag", leaf.ErrUnknownTag, found.row.Tag)
	}
	return found.value(), nil
}

// Rows implements segment.Store. It reads the options with a statement of their own: a join would compare two columns that may
// have different collations. The options come behind the rows: a tag that is created between the statements is not seen
// without its options. They come in front of them, too: a tag that loses its options meanwhile is deleted, and left out. It
// may be made again with options before the node loads.
func (s *Store) Rows(ctx context.Context) (all []segment.Row, err error) {
	defer s.done(ctx, time.Now(), &err, "read rows")
	if l := s.layout.Load(); l != nil && !l.complete() {
		s.layout.CompareAndSwap(l, nil) // a schema may have been applied
	}
	err = s.lookLayout(ctx, func(q querier, l *layout) (err error) {
		if l.options == nil {
			all, err = scanRows(ctx, q, l.readAll)
			return err
		}
		before, err := s.readManyOptions(ctx, q, l.options.all)
		if err != nil {
			return err
		}
		if all, err = scanRows(ctx, q, l.readAll); err != nil {
			return err
		}
		options, err := s.readManyOptions(ctx, q, l.options.all)
		all = slices.DeleteFunc(all, func(row segment.Row) bool {
			_, had := before[row.Tag]
			_, has := options[row.Tag]
			return had && !has
		})
		join(all, options)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// RowsAfter implements segment.Catalog. The database sorts all names, but only a page of
// rows leaves it.
func (s *Store) RowsAfter(ctx context.Context, after string, limit int) (page []segment.Row, err error) {
	defer s.done(ctx, time.Now(), &err, "read rows behind %q", after)
	err = s.lookLayout(ctx, func(q querier, l *layout) error {
		var err error
		if page, err = scanRows(ctx, q, l.readPage, after, limit); err != nil || len(page) == 0 || l.options == nil {
			return err
		}
		options, err := s.readManyOptions(ctx, q, l.options.after, after, page[len(page)-1].Tag)
		join(page, options)
		return err
	})
	if err != nil {
		return nil, err
	}
	return page, nil
}

// join puts the options into their rows.
func join(rows []segment.Row, options map[string]readOption) {
	for i, row := range rows {
		option := options[row.Tag]
		switch {
		case row.Problem != nil:
		case option.problem != nil:
			rows[i] = segment.Row{Tag: row.Tag, Problem: fmt.Errorf("options: %w", option.problem)}
		default:
			rows[i].Options = option.value
		}
	}
}

// scanRows returns what a statement with the columns of layout.readAll reads, without the
// options.
func scanRows(ctx context.Context, q querier, query string, args ...any) (all []segment.Row, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var found record
	dest := found.dest()
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			tag, nameErr := nameOnly(rows, len(dest))
			if nameErr != nil {
				return nil, err
			}
			all = append(all, segment.Row{Tag: tag, Problem: err})
			continue
		}
		all = append(all, found.value())
	}
	return all, rows.Err()
}

// nameOnly scans the name of a row whose other columns cannot be read: one such row must
// not hide the others. A name that cannot be read either is "".
func nameOnly(rows *sql.Rows, columns int) (string, error) {
	var name any
	dest := make([]any, columns)
	for i := range dest {
		dest[i] = new(any)
	}
	dest[0] = &name
	if err := rows.Scan(dest...); err != nil {
		return "", err
	}
	switch name := name.(type) {
	case string:
		return name, nil
	case []byte:
		return string(name), nil
	}
	return "", nil
}

// record is a row of leaf_alloc as a statement returns it.
type record struct {
	row   segment.Row
	epoch sql.NullInt64 // NULL or 0 where the time is not known
}

func (r *record) dest() []any {
	return []any{&r.row.Tag, &r.row.MaxID, &r.row.Step, &r.epoch, &r.row.Description}
}

// value returns what was scanned last.
func (r *record) value() segment.Row {
	row := r.row
	if r.epoch.Int64 != 0 {
		row.UpdateTime = time.Unix(r.epoch.Int64, 0)
	}
	return row
}
