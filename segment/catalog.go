package segment

import (
	"context"
	"fmt"

	"github.com/leaf-idgen/leaf"
)

// MaxDescription is the longest description in characters, the width of its column.
const MaxDescription = 256

// Catalog manages the rows of a database. Administrative commands use it; the
// engine never does. A driver's store implements Store and Catalog together.
// The contract of Store holds here too. Every call stands alone: none needs Bind. Create, Update
// and Delete fail with a *ClusterError where Reserve does.
type Catalog interface {
	// Create inserts a row. Errors: leaf.ErrConflict if the tag exists (or one
	// that the database cannot tell from it), or if NewRow.CheckStart refuses what the
	// board knows of the tag, leaf.ErrBadRequest if a value is outside its limits,
	// ErrSchema if options are given and leaf_tag_option is missing. A database without
	// a board knows nothing of a tag. Create asks no node: a row that is not there may have been
	// lost, and a program that makes it again at its start repeats the IDs of other programs. Make
	// the rows of a database that others use once, with leaf tag create.
	Create(ctx context.Context, row NewRow) error

	// Update changes the fields that are not nil, in one transaction. Errors: that of
	// Change.CheckMaxID, leaf.ErrUnknownTag, leaf.ErrBadRequest, ErrSchema as in Create.
	Update(ctx context.Context, tag string, change Change) error

	// Delete removes the row and its options, and in the same transaction leaves the
	// row's max_id on the board as the answer of DeletedRow, unless a higher one is there.
	// Errors: that of CheckDelete, leaf.ErrUnknownTag, ErrSchema without the tables of the board.
	Delete(ctx context.Context, tag string) error

	// RowsAfter returns the first limit rows, or all if there are fewer, whose tag names
	// come after the name after, in the order of the names' bytes whatever the collation
	// of the column. limit is 1 or more. Rows are as Store.Rows has them; a row without a
	// name comes after nothing. Error: ErrSchema.
	RowsAfter(ctx context.Context, after string, limit int) ([]Row, error)
}

// NewRow is a row to be created.
type NewRow struct {
	Tag         string `json:"tag"`
	Start       int64  `json:"start,string"` // the first ID, that is the new row's max_id; 0 to MaxMaxID
	Step        int64  `json:"step"`         // 1 to MaxStep
	Description string `json:"description,omitempty"`
	Options
}

// Validate returns leaf.ErrBadRequest, naming field, value and limit, if the row may
// not be created. Drivers call it before they touch the database.
func (r NewRow) Validate() error {
	if err := leaf.ValidateTag(r.Tag); err != nil {
		return err
	}
	now := leaf.SystemRuntime().Now()
	if _, why, before := r.beforePeriod(r.Start, now); before && r.Start > 1 { // a new tag begins at 1, as without a period
		return leaf.BadField("start", r.Start, why+"; a tag that was never there before needs no start")
	}
	if next, beyond := r.beyondPeriod(r.Start, now); beyond {
		return leaf.BadField("start", r.Start, fmt.Sprintf("must be below %d, with which the next period begins; if the tag was there before, and has numbers of that period, wait for it, or %s", next, anotherTag))
	}
	return Change{MaxID: &r.Start, Step: &r.Step, Description: &r.Description}.validate(r.Options)
}
