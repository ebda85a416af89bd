package sqldb

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// Create implements segment.Catalog.
func (s *Store) Create(ctx context.Context, row segment.NewRow) (err error) {
	if err := row.Validate(); err != nil {
		return err
	}
	row.Options = row.Stored()
	defer s.done(ctx, time.Now(), &err, "create tag %q", row.Tag)
	return s.withOptions(ctx, row.Options != segment.Options{}, func(l *layout) error {
		if row.Description != "" && l.text == "" {
			return s.noText()
		}
		err := s.insertChecked(ctx, l, row)
		switch {
		case err == nil:
			return nil
		case s.dialect.kindOf(err) == kindBadText:
			return fmt.Errorf("%w: %w", leaf.BadField("tag or description", row.Tag, "has a character that the table's character set cannot hold"), err)
		case s.dialect.kindOf(err) == kindDuplicate:
			return s.duplicate(ctx, row.Tag)
		}
		return err
	})
}

// insertChecked inserts a row unless the board knows higher numbers of its tag. The board
// is read last: the INSERT has waited for a Delete of the same tag by then.
func (s *Store) insertChecked(ctx context.Context, l *layout, row segment.NewRow) error {
	board := true
	insert := func() error {
		return s.change(ctx, func(conn *sql.Conn) error {
			if err := s.insertRow(ctx, conn, l, row); err != nil {
				return err
			}
			if err := s.clearOptions(ctx, conn, l, row.Tag); err != nil {
				return err
			}
			if row.Options != (segment.Options{}) {
				if err := s.writeOptions(ctx, conn, l, row.Tag, row.Options); err != nil {
					return err
				}
			}
			if !board {
				return nil
			}
			return s.checkStart(ctx, conn, row)
		})
	}
	err := s.again(ctx, insert)
	switch {
	case !errors.Is(err, errNoBoard):
	case l.meta: // leaf schema apply makes both, so the board was lost
		return fmt.Errorf("%w. If tag %q was there before, then wait for a minute, in which nodes tell what they know, and create it with --start NUMBER, with %s",
			s.schemaError("the tables leaf_repair and leaf_repair_node are gone, which said where the numbers of deleted tags end", err), row.Tag, segment.AboveAll)
	default: // no node can have left anything there
		board = false
		err = s.again(ctx, insert)
	}
	return err
}

// errNoBoard: the tables of the board are missing.
var errNoBoard = errors.New("sqldb: no board")

func (s *Store) checkStart(ctx context.Context, conn *sql.Conn, row segment.NewRow) error {
	notices, err := s.scanNotices(ctx, conn, s.board.notice, row.Tag)
	var answers []segment.Answer
	if err == nil {
		answers, err = s.scanAnswers(ctx, conn, s.board.answers, row.Tag)
	}
	switch {
	case err != nil && s.dialect.kindOf(err) == kindNoTable:
		return fmt.Errorf("%w: %w", errNoBoard, err)
	case err != nil && s.dialect.kindOf(err) == kindHidden:
		return s.noBoard(err)
	case err != nil:
		return fmt.Errorf("read what the board knows: %w", err)
	}
	var n segment.Notice
	if len(notices) > 0 {
		n = notices[0]
	}
	return row.CheckStart(n, answers)
}

// duplicate says which row stands in the way of a new one.
func (s *Store) duplicate(ctx context.Context, tag string) error {
	var name string
	var row state
	ok, err := queryRow(ctx, s.read, s.sql.read, []any{tag}, []any{&name, &row.maxID, &row.step})
	if err == nil && ok && name != tag {
		return fmt.Errorf("%w: the table cannot tell it from the existing tag %q", leaf.ErrConflict, name)
	}
	return fmt.Errorf("%w: the tag exists", leaf.ErrConflict)
}

func (s *Store) insertRow(ctx context.Context, conn *sql.Conn, l *layout, row segment.NewRow) error {
	columns, marks := "biz_tag, max_id, step", "?, ?, ?"
	args := []any{row.Tag, row.Start, row.Step}
	if row.Description != "" {
		columns += ", " + s.dialect.column(l.text)
		marks += ", ?"
		args = append(args, row.Description)
	}
	query := "INSERT INTO leaf_alloc (" + columns + ", update_time) VALUES (" + marks + ", CURRENT_TIMESTAMP)"
	if _, err := conn.ExecContext(ctx, s.dialect.bind(query), args...); err != nil {
		return fmt.Errorf("insert row: %w", err)
	}
	return s.checkWritten(ctx, conn, row.Tag, row.Start)
}

// Update implements segment.Catalog.
func (s *Store) Update(ctx context.Context, tag string, c segment.Change) (err error) {
	if err := leaf.ValidateTag(tag); err != nil {
		return err
	}
	if err := c.Validate(); err != nil {
		return err
	}
	defer s.done(ctx, time.Now(), &err, "update tag %q", tag)
	return s.withOptions(ctx, c.TouchesOptions(), func(l *layout) error {
		if c.Description != nil && l.text == "" {
			return s.noText()
		}
		err := s.again(ctx, func() error {
			return s.change(ctx, func(conn *sql.Conn) error { return s.updateRow(ctx, conn, l, tag, c) })
		})
		if err != nil && c.Description != nil && s.dialect.kindOf(err) == kindBadText {
			return fmt.Errorf("%w: %w", leaf.BadField("description", *c.Description, "has a character that the table's character set cannot hold"), err)
		}
		return err
	})
}

func (s *Store) updateRow(ctx context.Context, conn *sql.Conn, l *layout, tag string, c segment.Change) error {
	row, err := s.lockRow(ctx, conn, tag)
	corrects := errors.Is(err, errUnreadable) && c.Step != nil && c.MaxID == nil // writes the step, needs nothing of the row
	if err != nil && !corrects {
		return err
	}
	set := []string{"update_time = CURRENT_TIMESTAMP"}
	var args []any
	if err := c.CheckMaxID(row.maxID); err != nil {
		return err
	}
	if c.MaxID != nil {
		set, args = append(set, "max_id = ?"), append(args, *c.MaxID)
	}
	if c.Step != nil {
		set, args = append(set, "step = ?"), append(args, *c.Step)
	}
	if c.Description != nil {
		set, args = append(set, s.dialect.column(l.text)+" = ?"), append(args, *c.Description)
	}
	query := "UPDATE leaf_alloc SET " + strings.Join(set, ", ") + " WHERE biz_tag = ? AND " + s.dialect.exact
	if _, err := conn.ExecContext(ctx, s.dialect.bind(query), append(args, tag, tag)...); err != nil {
		return fmt.Errorf("update row: %w", err)
	}
	if c.MaxID != nil {
		if err := s.checkWritten(ctx, conn, tag, *c.MaxID); err != nil {
			return err
		}
	}
	others := !c.TouchesOptions()
	if others && (c.MaxID == nil || l.options == nil) {
		return nil
	}
	options, _, err := s.readOptions(ctx, conn, l, tag)
	if others && errors.Is(err, leaf.ErrInvalidRow) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := c.CheckPeriod(options, row.maxID); err != nil || others {
		return err
	}
	if err := c.CheckFormat(options); err != nil {
		return err
	}
	options = c.ApplyTo(options)
	if err := options.Validate(); err != nil {
		return err
	}
	return s.writeOptions(ctx, conn, l, tag, options)
}

// Delete implements segment.Catalog.
func (s *Store) Delete(ctx context.Context, tag string) (err error) {
	if err := leaf.ValidateTag(tag); err != nil {
		return err
	}
	defer s.done(ctx, time.Now(), &err, "delete tag %q", tag)
	return s.withLayout(ctx, func(l *layout) error {
		return s.again(ctx, func() error {
			return s.change(ctx, func(conn *sql.Conn) error { return s.deleteRow(ctx, conn, l, tag) })
		})
	})
}

// deleteRow deletes a row and leaves its end on the board.
func (s *Store) deleteRow(ctx context.Context, conn *sql.Conn, l *layout, tag string) error {
	row, err := s.lockRow(ctx, conn, tag)
	if err == nil {
		err = segment.CheckDelete(row.maxID)
	}
	if err != nil {
		return err
	}
	err = s.keepEnd(ctx, conn, tag, row.maxID)
	switch {
	case err != nil && s.dialect.kindOf(err).missing():
		return s.noBoard(err)
	case err != nil:
		return fmt.Errorf("keep the end of the row: %w", err)
	}
	if _, err := conn.ExecContext(ctx, s.sql.delete, tag, tag); err != nil {
		return fmt.Errorf("delete row: %w", err)
	}
	return s.clearOptions(ctx, conn, l, tag)
}

// clearOptions removes the options and the limit of a tag, which share a row.
func (s *Store) clearOptions(ctx context.Context, conn *sql.Conn, l *layout, tag string) error {
	if l.options == nil {
		return nil
	}
	if _, err := conn.ExecContext(ctx, s.sql.deleteOptions, tag, tag); err != nil {
		return fmt.Errorf("delete options: %w", err)
	}
	return nil
}

// putOptions writes some columns of the row that the options and the limit of a tag share, by
// the statement for them. It leaves the others, of which this Store may not know yet. The row
// in leaf_alloc is locked.
func (s *Store) putOptions(ctx context.Context, conn *sql.Conn, tag, put string, values ...any) error {
	var name string
	there, err := queryRow(ctx, conn, s.sql.hasOption, []any{tag}, []any{&name})
	switch {
	case err != nil:
		return fmt.Errorf("look for options: %w", err)
	case there && name != tag:
		return fmt.Errorf("%w: the table leaf_tag_option cannot tell it from the tag %q", leaf.ErrConflict, name)
	case !there:
		if _, err := conn.ExecContext(ctx, s.sql.insertOption, tag); err != nil {
			return fmt.Errorf("insert options: %w", err)
		}
	}
	if _, err := conn.ExecContext(ctx, put, append(values, tag, tag)...); err != nil {
		return fmt.Errorf("write options: %w", err)
	}
	return nil
}

func (s *Store) noText() error {
	return fmt.Errorf("%w: leaf_alloc has neither a column description nor desc, so a tag cannot be described", segment.ErrSchema)
}
