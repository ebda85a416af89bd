package manage

import (
	"context"
	"errors"
	"time"
	"unicode/utf8"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// Tag is one row with its options and what this node knows about it. 64-bit
// numbers are strings in JSON, because JavaScript rounds them above 2^53.
type Tag struct {
	Name        string    `json:"tag"`
	MaxID       int64     `json:"max_id,string"`
	Step        int64     `json:"step"`
	Description string    `json:"description,omitempty"`
	UpdateTime  time.Time `json:"update_time,omitzero"`
	segment.Options
	Store string `json:"store,omitempty"` // name of its database, if there are several

	Fence int64  `json:"fence,string,omitempty"` // highest end of this node's ranges, 0 if none
	State string `json:"state"`                  // TagOK or one of its neighbours

	// Rows is of a sequence in a list, which is one entry: of how many rows. MaxID and Fence are the largest of them. 0:
	// a tag.
	Rows int `json:"rows,omitempty"`
}

// States of a Tag on the node that answers.
const (
	TagOK      = "ok"
	TagLatched = "latched" // the store went backwards, see [RepairTag]

	// TagUnreadable: the row has something that is no number; no range is taken of it.
	TagUnreadable = "unreadable"
)

// GetTag returns one tag. Error: leaf.ErrUnknownTag.
type GetTag struct {
	Name string `query:"tag"`
}

func (q GetTag) run(ctx context.Context, c *Catalog) (Tag, error) { return c.tag(ctx, q.Name) }

// CreateTag inserts a row and returns it. Errors: leaf.ErrConflict if it exists, or if
// Start lies below the highest end that this node, its cluster fence or the board of the
// database knows for the name; leaf.ErrNotReady if the cluster fence does not answer;
// leaf.ErrBadRequest.
type CreateTag struct{ segment.NewRow }

func (q CreateTag) validate() error {
	return errors.Join(leaf.ValidateTag(q.Tag), checkText("description", q.Description))
}

func (q CreateTag) run(ctx context.Context, c *Catalog) (Tag, error) {
	if err := errPart(q.Tag); err != nil {
		return Tag{}, err
	}
	if m := c.Router.Masters(q.Tag); m != nil {
		return c.createMasters(ctx, m, q.NewRow)
	}
	if err := c.change(ctx, q.Tag, func() error { return c.create(ctx, q.NewRow) }); err != nil {
		return Tag{}, err
	}
	return c.changedTag(ctx, q.Tag)
}

// SetTag changes the fields that are not nil and returns the tag. Lowering max_id is
// leaf.ErrConflict. Errors: leaf.ErrUnknownTag, leaf.ErrBadRequest.
type SetTag struct {
	Name string `query:"tag" json:"-"`
	segment.Change
}

func (q SetTag) validate() error {
	if q.Description == nil {
		return nil
	}
	return checkText("description", *q.Description)
}

func (q SetTag) run(ctx context.Context, c *Catalog) (Tag, error) {
	if err := c.change(ctx, q.Name, func() error { return c.set(ctx, q.Name, q.Change) }); err != nil {
		return Tag{}, err
	}
	return c.changedTag(ctx, q.Name)
}

// DeleteTag removes the row and its options. Error: leaf.ErrUnknownTag.
type DeleteTag struct {
	Name string `query:"tag"`
}

func (q DeleteTag) run(ctx context.Context, c *Catalog) (None, error) {
	return None{}, c.change(ctx, q.Name, func() error { return c.delete(ctx, q.Name) })
}

// checkText refuses a text that package json would change on its way to the node.
func checkText(field, text string) error {
	if !utf8.ValidString(text) {
		return leaf.BadField(field, text, "must be valid UTF-8")
	}
	return nil
}
