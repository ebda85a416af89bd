package manage

import (
	"context"
	"errors"
	"fmt"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// checkElsewhere refuses a tag that would begin below its numbers in another database: the
// tag rule was changed, and the row was not moved. Numbers are in use there up to the row's
// max_id, or, without a row, up to what the board knows.
func (c *Catalog) checkElsewhere(ctx context.Context, to int, row segment.NewRow) error {
	for i, s := range c.Stores {
		if i == to {
			continue
		}
		known, err := knownIn(ctx, c.storeName(i), s, row)
		if err != nil {
			return StoreError(fmt.Errorf("look for tag %q in store %q: %w", row.Tag, c.storeName(i), err))
		}
		if row.Start < known {
			return fmt.Errorf("%w: numbers of tag %q below %d are in use from its row in store %q, so --start %d could repeat some; stop the nodes that use that row, and Java servers for good, and use --start %d or more",
				leaf.ErrConflict, row.Tag, known, c.storeName(i), row.Start, row.LeastStart(known))
		}
	}
	return nil
}

// knownIn returns the max_id of the tag's row in a database of that name, 0 if it has none. The error is
// that of NewRow.CheckStart if the board knows higher numbers than the row's start.
func knownIn(ctx context.Context, name string, s Store, row segment.NewRow) (int64, error) {
	old, err := s.Lookup(ctx, row.Tag)
	switch {
	case errors.Is(err, segment.ErrSchema):
		return 0, nil // without a table there are no rows
	case err == nil:
		err = Readable(name, old)
	case errors.Is(err, leaf.ErrUnknownTag):
		err = nil
	}
	if err != nil {
		return 0, err
	}
	board, ok := s.(segment.Board)
	if !ok {
		return old.MaxID, nil
	}
	answers, err := board.Answers(ctx, row.Tag)
	if errors.Is(err, segment.ErrSchema) && !errors.Is(err, segment.ErrDenied) {
		return old.MaxID, nil
	}
	if err != nil {
		return old.MaxID, err
	}
	// A regress that is not repaired yet is known from its notice alone.
	notices, err := board.Notices(ctx)
	if err != nil {
		return old.MaxID, err
	}
	return old.MaxID, row.CheckStart(segment.NoticeOf(row.Tag, notices), answers)
}
