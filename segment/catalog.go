package segment

import "context"

// Catalog manages the rows of a database. Administrative commands use it; the
// engine never does. A driver's store implements Store and Catalog together.
// The contract of Store holds here too. Every call stands alone: none needs Bind.
type Catalog interface {
	// Create inserts a row. Errors: leaf.ErrConflict if the tag exists (or one
	// that the database cannot tell from it), leaf.ErrBadRequest if a value is
	// outside its limits, ErrSchema if options are given and leaf_tag_option is
	// missing.
	Create(ctx context.Context, row NewRow) error

	// Update changes the fields that are not nil, in one transaction. Lowering
	// MaxID is leaf.ErrConflict. Errors: leaf.ErrUnknownTag, leaf.ErrBadRequest,
	// ErrSchema as in Create.
	Update(ctx context.Context, tag string, change Change) error

	// Delete removes the row and its options. Error: leaf.ErrUnknownTag.
	Delete(ctx context.Context, tag string) error
}

// NewRow is a row to be created.
type NewRow struct {
	Tag         string
	Start       int64 // the first ID, that is the new row's max_id; 0 to MaxMaxID
	Step        int64 // 1 to MaxStep
	Description string
	Options     Options
}

// Change is an edit of a row. Nil fields stay as they are.
type Change struct {
	MaxID       *int64
	Step        *int64
	Description *string
	MinStep     *int64
	MaxStep     *int64
	FixedStep   *bool
}

// TouchesOptions reports whether c needs leaf_tag_option.
func (c Change) TouchesOptions() bool {
	return c.MinStep != nil || c.MaxStep != nil || c.FixedStep != nil
}

// ApplyTo returns o with c's option fields set.
func (c Change) ApplyTo(o Options) Options {
	if c.MinStep != nil {
		o.MinStep = *c.MinStep
	}
	if c.MaxStep != nil {
		o.MaxStep = *c.MaxStep
	}
	if c.FixedStep != nil {
		o.FixedStep = *c.FixedStep
	}
	return o
}
