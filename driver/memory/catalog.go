package memory

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// Create implements segment.Catalog.
func (s *Store) Create(ctx context.Context, row segment.NewRow) error {
	if err := row.Validate(); err != nil {
		return err
	}
	row.Options = row.Stored()
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("create tag %q: %w", row.Tag, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.rows[row.Tag]; ok {
		return fmt.Errorf("create tag %q: %w: the tag exists", row.Tag, leaf.ErrConflict)
	}
	if err := row.CheckStart(s.board.notices[row.Tag], s.board.about(row.Tag)); err != nil {
		return fmt.Errorf("create tag %q: %w", row.Tag, err)
	}
	s.rows[row.Tag] = segment.Row{
		Tag: row.Tag, MaxID: row.Start, Step: row.Step,
		Description: row.Description, UpdateTime: time.Now(), Options: row.Options,
	}
	return nil
}

// Update implements segment.Catalog.
func (s *Store) Update(ctx context.Context, tag string, c segment.Change) error {
	if err := c.Validate(); err != nil {
		return err
	}
	return s.change(ctx, "update", tag, func(row *segment.Row) error {
		next := *row
		if c.MaxID != nil {
			next.MaxID = *c.MaxID
		}
		if c.Step != nil {
			next.Step = *c.Step
		}
		if c.Description != nil {
			next.Description = *c.Description
		}
		next.Options = c.ApplyTo(row.Options)
		if err := next.Options.Validate(); err != nil && c.TouchesOptions() {
			return err
		}
		if err := c.CheckPeriod(row.Options, row.MaxID); err != nil {
			return err
		}
		if err := c.CheckFormat(row.Options); err != nil {
			return err
		}
		if err := c.CheckMaxID(row.MaxID); err != nil {
			return err
		}
		*row = next
		return nil
	})
}

// Delete implements segment.Catalog.
func (s *Store) Delete(ctx context.Context, tag string) error {
	if err := leaf.ValidateTag(tag); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("delete tag %q: %w", tag, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	row, ok := s.rows[tag]
	if !ok {
		return fmt.Errorf("delete tag %q: %w", tag, leaf.ErrUnknownTag)
	}
	if err := segment.CheckDelete(row.MaxID); err != nil {
		return fmt.Errorf("delete tag %q: %w", tag, err)
	}
	s.board.deleted(row)
	delete(s.rows, tag)
	delete(s.limits.Tags, tag)
	return nil
}

// RowsAfter implements segment.Catalog.
func (s *Store) RowsAfter(ctx context.Context, after string, limit int) ([]segment.Row, error) {
	rows, err := s.Rows(ctx)
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(row segment.Row) bool { return row.Tag <= after })
	slices.SortFunc(rows, func(a, b segment.Row) int { return strings.Compare(a.Tag, b.Tag) })
	return rows[:min(limit, len(rows))], nil
}

// change applies f to one row and keeps the result unless f returns an error.
func (s *Store) change(ctx context.Context, what, tag string, f func(row *segment.Row) error) error {
	if err := leaf.ValidateTag(tag); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s tag %q: %w", what, tag, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	row, ok := s.rows[tag]
	if !ok {
		return fmt.Errorf("%s tag %q: %w", what, tag, leaf.ErrUnknownTag)
	}
	if err := f(&row); err != nil {
		return fmt.Errorf("%s tag %q: %w", what, tag, err)
	}
	row.UpdateTime = time.Now()
	s.rows[tag] = row
	return nil
}
