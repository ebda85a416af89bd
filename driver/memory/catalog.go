package memory

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// Create implements segment.Catalog.
func (s *Store) Create(ctx context.Context, row segment.NewRow) error {
	if err := checkNew(row); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("create tag %q: %w", row.Tag, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.rows[row.Tag]; ok {
		return fmt.Errorf("create tag %q: %w: the tag exists", row.Tag, leaf.ErrConflict)
	}
	s.rows[row.Tag] = segment.Row{
		Tag: row.Tag, MaxID: row.Start, Step: row.Step,
		Description: row.Description, UpdateTime: time.Now(), Options: row.Options,
	}
	return nil
}

// Update implements segment.Catalog.
func (s *Store) Update(ctx context.Context, tag string, c segment.Change) error {
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
		if err := checkChange(c, next); err != nil {
			return err
		}
		if next.MaxID < row.MaxID {
			return fmt.Errorf("%w: max_id is %d and must not be lowered to %d", leaf.ErrConflict, row.MaxID, next.MaxID)
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
	if _, ok := s.rows[tag]; !ok {
		return fmt.Errorf("delete tag %q: %w", tag, leaf.ErrUnknownTag)
	}
	delete(s.rows, tag)
	return nil
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

func checkNew(row segment.NewRow) error {
	if err := leaf.ValidateTag(row.Tag); err != nil {
		return err
	}
	return checkValues(row.Start, row.Step, row.Description, row.Options)
}

// checkChange checks the fields that c sets, with their values in next: a row
// whose other fields are outside their limits can be repaired one by one.
func checkChange(c segment.Change, next segment.Row) error {
	maxID, step, text := int64(0), int64(1), ""
	if c.MaxID != nil {
		maxID = next.MaxID
	}
	if c.Step != nil {
		step = next.Step
	}
	if c.Description != nil {
		text = next.Description
	}
	return checkValues(maxID, step, text, next.Options)
}

func checkValues(maxID, step int64, description string, o segment.Options) error {
	switch {
	case maxID < 0 || maxID > segment.MaxMaxID:
		return leaf.BadField("max_id", maxID, fmt.Sprintf("must be 0 to %d", int64(segment.MaxMaxID)))
	case step < 1 || step > segment.MaxStep:
		return leaf.BadField("step", step, fmt.Sprintf("must be 1 to %d", segment.MaxStep))
	case utf8.RuneCountInString(description) > 256:
		return leaf.BadField("description", description, "must have at most 256 characters")
	case !utf8.ValidString(description) || strings.IndexByte(description, 0) >= 0:
		return leaf.BadField("description", description, "must be valid UTF-8 without the character U+0000")
	}
	return o.Validate()
}
