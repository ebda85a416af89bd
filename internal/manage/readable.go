package manage

import (
	"fmt"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// Readable is leaf.ErrConflict for a row of a tag that cannot be read, or that waits for a repair below 0: where its numbers
// end is not known. A row whose name is no tag's issues nothing.
func Readable(store string, row segment.Row) error {
	isTag := leaf.ValidateTag(row.Tag) == nil
	if row.Problem == nil && row.MaxID < 0 {
		row.Problem = fmt.Errorf("max_id is %d, and no node wrote that", row.MaxID)
	}
	if row.Problem == nil || !isTag {
		return nil
	}
	return fmt.Errorf("%w: the row of tag %q in store %q cannot be read, so it is not known where its numbers end: %w. "+
		"Correct in the database what cannot be read, and leave the rest of the row as it is. Only if that is max_id, take the highest number of the tag in your own tables, plus "+segment.Margin+"; "+
		"for a tag whose numbers begin anew in each period, no number below the first one of the period that is now (docs/NUMBERS.md). Then run the command again",
		leaf.ErrConflict, row.Tag, store, row.Problem)
}
