package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// The columns of segment.Options in leaf_tag_option.
var optionColumns, optionZeros = new(segment.Options).Columns()

// noOption is what a statement reads in the place of a column that the table lacks.
func noOption(column int) string {
	if _, text := optionZeros[column].(*string); text {
		return "''"
	}
	return "0"
}

// optionFields are where a statement with optionColumns puts them, or takes them from.
func optionFields(o *segment.Options) []any {
	_, values := o.Columns()
	return values
}

// optionStatements are the texts for the columns of optionColumns that a table leaf_tag_option
// has. An older program may have made it: an option whose column it lacks has no value there.
type optionStatements struct {
	lacking []string // columns

	one   string // one row of options: tag
	all   string
	after string // those of the tags behind one, up to another: tag, tag
	put   string // the columns that are there, tag, tag
}

// optionStatements returns those for a table with some columns, nil without a table.
func (d *dialect) optionStatements(has []string) *optionStatements {
	if has == nil {
		return nil
	}
	o := &optionStatements{}
	var there, read []string
	for i, name := range optionColumns {
		if slices.Contains(has, name) {
			there, read = append(there, name), append(read, name)
		} else {
			o.lacking, read = append(o.lacking, name), append(read, noOption(i))
		}
	}
	o.all = "SELECT biz_tag, " + strings.Join(read, ", ") + " FROM leaf_tag_option"
	o.one = d.bind(o.all + " WHERE biz_tag = ?")
	o.after = d.bind(o.all + " WHERE " + d.after + " AND NOT (" + d.after + ")")
	o.put = d.put(there)
	return o
}

// put is the statement that writes some columns of leaf_tag_option: their values, tag, tag.
func (d *dialect) put(columns []string) string {
	return d.bind("UPDATE leaf_tag_option SET " + strings.Join(columns, " = ?, ") + " = ?, update_time = CURRENT_TIMESTAMP WHERE biz_tag = ? AND " + d.exact)
}

// readOptions returns the options of one tag, zero if it has none (found).
func (s *Store) readOptions(ctx context.Context, q querier, l *layout, tag string) (_ segment.Options, found bool, err error) {
	var name string
	var o segment.Options
	found, err = queryRow(ctx, q, l.options.one, []any{tag}, append([]any{&name}, optionFields(&o)...))
	if errors.Is(err, errUnreadable) {
		return segment.Options{}, false, fmt.Errorf("%w: options: %w", leaf.ErrInvalidRow, err)
	}
	if err != nil {
		return segment.Options{}, false, fmt.Errorf("read options: %w", err)
	}
	if !found || name != tag {
		return segment.Options{}, false, nil
	}
	return o, true, nil
}

// readOption is the options of a tag, or why they cannot be read.
type readOption struct {
	value   segment.Options
	problem error
}

// readManyOptions returns what one of the optionStatements reads, by tag.
func (s *Store) readManyOptions(ctx context.Context, q querier, query string, args ...any) (all map[string]readOption, err error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("read options: %w", err)
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	all = make(map[string]readOption)
	for rows.Next() {
		var name string
		var o segment.Options
		err := rows.Scan(append([]any{&name}, optionFields(&o)...)...)
		if err != nil {
			var nameErr error
			if name, nameErr = nameOnly(rows, 1+len(optionFields(&o))); nameErr != nil {
				return nil, fmt.Errorf("read options: %w", err)
			}
		}
		all[name] = readOption{o, err}
	}
	return all, rows.Err()
}

// writeOptions replaces the options of a tag, whose row in leaf_alloc is locked. It returns
// segment.ErrSchema if one has a value and no column.
func (s *Store) writeOptions(ctx context.Context, conn *sql.Conn, l *layout, tag string, o segment.Options) error {
	names, fields := o.Columns()
	var values []any
	for i, name := range names {
		switch lacks := slices.Contains(l.options.lacking, name); {
		case !lacks:
			values = append(values, fields[i])
		case !reflect.ValueOf(fields[i]).Elem().IsZero():
			return s.schemaError("the table leaf_tag_option has no column "+name, nil)
		}
	}
	if values == nil {
		return nil // nothing is there, and nothing has a value
	}
	return s.putOptions(ctx, conn, tag, l.options.put, values...)
}
