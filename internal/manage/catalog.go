package manage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/limit"
	"github.com/leaf-idgen/leaf/internal/sequence"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// Store is a database of tags and limits.
type Store interface {
	segment.Store
	segment.Catalog
	limit.Store
}

// Catalog is the rows of all databases, joined with the fence of a node.
type Catalog struct {
	Stores  []Store         // in the order of Router
	Router  *segment.Router // nil without Stores
	Timeout time.Duration   // of one call; reading all rows has ten times as much

	// Pages and Lists have room for as many calls of TagsAfter and of Tags as may run at a time. They use
	// the connections of the loads, which would wait behind those of many readers. Administrators who list
	// all tags do not wait for the clients who read pages. nil: no limit.
	Pages, Lists chan struct{}

	// Mark returns what the node's fence knows of a tag.
	Mark func(tag string) fence.Mark

	// ClusterEnd returns the highest end of a tag's ranges that the cluster fence holds, 0 if
	// there is none. It is nil without a running node.
	ClusterEnd func(ctx context.Context, tag string) (int64, error)

	// Engine starts the engine, if it was not started before.
	Engine func(ctx context.Context) (*segment.Allocator, error)

	// Bound is called before a change of a tag. It fails if the tag's database is not known
	// to belong to the configured division of tags. nil: that was checked before.
	Bound func(ctx context.Context, tag string) error

	// TagChanged makes a committed change of a tag take effect at once.
	TagChanged func(ctx context.Context, tag string) error

	// LimitChanged makes a committed change of a limit take effect at once, and Gate enforces
	// the limits. Both are nil without a running node.
	LimitChanged func(ctx context.Context, l Limit)
	Gate         *limit.Gate
}

func (c *Catalog) bound(ctx context.Context, tag string) error {
	if c.Bound == nil {
		return nil
	}
	return c.Bound(ctx, tag)
}

// change makes a change of a tag, which takes effect at once on this node.
func (c *Catalog) change(ctx context.Context, tag string, change func() error) error {
	err := c.bound(ctx, tag)
	if err == nil {
		err = change()
	}
	if err == nil {
		err = made(c.TagChanged(ctx, tag))
	}
	return err
}

// madeError is why an operation fails whose change is made.
type madeError struct{ cause error }

func (e *madeError) Error() string {
	return "the change is made, and what follows it fails: " + e.cause.Error()
}

func (e *madeError) Unwrap() error { return e.cause }

// made returns the error of what follows a change, nil if there is none.
func made(err error) error {
	if err == nil {
		return nil
	}
	return &madeError{err}
}

// route returns the index of a valid tag's database.
func (c *Catalog) route(tag string) (int, error) {
	if err := leaf.ValidateTag(tag); err != nil {
		return 0, err
	}
	i := c.Router.Route(tag)
	if m := c.Router.Masters(tag); m != nil {
		parts, _ := m.Parts(tag)
		return 0, fmt.Errorf("%w: tag %q lives in several databases; name one of its rows: %s", leaf.ErrBadRequest, tag, strings.Join(parts, ", "))
	}
	if i < 0 {
		return 0, fmt.Errorf("%w: %q: no tag-rule covers it", leaf.ErrUnknownTag, tag)
	}
	return i, nil
}

// Holds reports whether a database is the one of a tag. The tag's rows in other databases are ignored.
func (c *Catalog) Holds(store int, tag string) bool {
	return len(c.Stores) == 1 || c.Router.Route(tag) == store
}

// storeName returns the name of a database, "" if there is only one.
func (c *Catalog) storeName(store int) string {
	if len(c.Stores) == 1 {
		return ""
	}
	return c.Router.Stores()[store].Name
}

// enter waits for room in slots, and returns what leaves them. The error is leaf.ErrNotReady.
func enter(ctx context.Context, slots chan struct{}) (leave func(), err error) {
	if slots == nil {
		return func() {}, nil
	}
	select {
	case slots <- struct{}{}:
		return func() { <-slots }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("%w: too many lists of tags are being read: %w", leaf.ErrNotReady, ctx.Err())
	}
}

// Tags returns all tags, sorted by name.
func (c *Catalog) Tags(ctx context.Context) ([]Tag, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*c.Timeout)
	defer cancel()
	leave, err := enter(ctx, c.Lists)
	if err != nil {
		return nil, err
	}
	defer leave()
	all := []Tag{}
	for i, s := range c.Stores {
		rows, err := s.Rows(ctx)
		if err != nil {
			return nil, StoreError(fmt.Errorf("list tags: %w", err))
		}
		for _, row := range rows {
			// A row that the rule sends elsewhere issues nothing: it is not this tag.
			if c.Holds(i, row.Tag) {
				all = append(all, c.describe(i, row))
			}
		}
	}
	slices.SortFunc(all, func(a, b Tag) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// TagsAfter returns at most limit of the tags behind after, in the order of their names'
// bytes, and the name behind which the next page begins, "" if there is none. It reads at
// most one row more from each database. A page can be shorter than limit although another
// one follows: rows that the rule sends to another database are read and left out.
func (c *Catalog) TagsAfter(ctx context.Context, after string, limit int) (page []Tag, next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*c.Timeout)
	defer cancel()
	leave, err := enter(ctx, c.Pages)
	if err != nil {
		return nil, "", err
	}
	defer leave()
	page = []Tag{}
	for i, s := range c.Stores {
		rows, err := s.RowsAfter(ctx, after, limit+1)
		if err != nil {
			return nil, "", StoreError(fmt.Errorf("list tags: %w", err))
		}
		if len(rows) > limit { // what lies behind its last row is not known
			if end := rows[limit-1].Tag; next == "" || end < next {
				next = end
			}
			rows = rows[:limit]
		}
		for _, row := range rows {
			if c.Holds(i, row.Tag) {
				page = append(page, c.describe(i, row))
			}
		}
	}
	if next != "" {
		page = slices.DeleteFunc(page, func(t Tag) bool { return t.Name > next })
	}
	slices.SortFunc(page, func(a, b Tag) int { return strings.Compare(a.Name, b.Name) })
	if len(page) > limit {
		page, next = page[:limit], page[limit-1].Name
	}
	return page, next, nil
}

func (c *Catalog) tag(ctx context.Context, name string) (Tag, error) {
	i, err := c.route(name)
	if err != nil {
		return Tag{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	row, err := c.Stores[i].Lookup(ctx, name)
	if err != nil {
		return Tag{}, StoreError(err)
	}
	return c.describe(i, row), nil
}

// changedTag is tag after a change of it.
func (c *Catalog) changedTag(ctx context.Context, name string) (Tag, error) {
	t, err := c.tag(ctx, name)
	return t, made(err)
}

func (c *Catalog) describe(store int, row segment.Row) Tag {
	t := Tag{
		Name: row.Tag, MaxID: row.MaxID, Step: row.Step, Description: row.Description, UpdateTime: row.UpdateTime, Options: row.Options,
		Store: c.storeName(store),
	}
	m := c.Mark(row.Tag)
	t.Fence, t.State = m.High, TagOK
	switch {
	case m.Latched:
		t.State = TagLatched
	case row.Problem != nil:
		t.State = TagUnreadable
	}
	return t
}

// create inserts a row. A start below a node's fence or the cluster fence would be refused at
// the first load, and the tag latched; a node without one would issue what others have issued.
// The engine is started only where the tag was there before.
func (c *Catalog) create(ctx context.Context, row segment.NewRow) error {
	if _, err := c.place(row.Tag); err != nil {
		return err
	}
	if c.Mark(row.Tag).High > 0 {
		if err := c.missing(ctx, row.Tag); err != nil {
			return err
		}
		alloc, err := c.Engine(ctx)
		if err == nil {
			err = checkStart(ctx, alloc, row)
		}
		if err != nil {
			return err
		}
	}
	return c.insert(ctx, row)
}

// place returns the index of the database in which a tag can be created.
func (c *Catalog) place(tag string) (int, error) {
	i, err := c.route(tag)
	if errors.Is(err, leaf.ErrUnknownTag) {
		err = leaf.BadField("tag", tag, "no tag-rule covers it: every database has a rule, and none matches")
	}
	if err == nil && (tag == "." || tag == "..") {
		err = leaf.BadField("tag", tag, "must not be a dot or two: HTTP clients take such a name out of the path")
	}
	return i, err
}

// insert is create after the nodes were asked.
func (c *Catalog) insert(ctx context.Context, row segment.NewRow) error {
	i, err := c.place(row.Tag)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	if err := c.checkCluster(ctx, row); err != nil {
		return err
	}
	if err := c.checkElsewhere(ctx, i, row); err != nil {
		return err
	}
	return StoreError(c.Stores[i].Create(ctx, row))
}

// missing returns an error if the tag has a row.
func (c *Catalog) missing(ctx context.Context, tag string) error {
	if _, err := c.tag(ctx, tag); err == nil {
		return fmt.Errorf("%w: tag %q exists", leaf.ErrConflict, tag)
	}
	return nil
}

func (c *Catalog) set(ctx context.Context, name string, change segment.Change) error {
	i, err := c.route(name)
	if err != nil {
		return err
	}
	if change == (segment.Change{}) {
		return fmt.Errorf("%w: nothing to change: name at least one field", leaf.ErrBadRequest)
	}
	if c.Router.TagOfPart(name) != "" {
		if err := fitsMasters(change.ApplyTo(segment.Options{})); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	if of, _, ok := sequence.ParseRow(name); ok && (change.Step != nil || change.TouchesOptions()) {
		row, err := c.Stores[i].Lookup(ctx, name)
		if err != nil {
			return StoreError(err)
		}
		if err := fitsSequence(of, row, change); err != nil {
			return err
		}
	}
	return StoreError(c.Stores[i].Update(ctx, name, change))
}

func (c *Catalog) delete(ctx context.Context, name string) error {
	i, err := c.route(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.Timeout)
	defer cancel()
	return StoreError(c.Stores[i].Delete(ctx, name))
}

func isOtherCluster(err error) bool {
	_, ok := errors.AsType[*segment.ClusterError](err)
	return ok
}

// StoreError gives an error of a store that has no class the one that callers can
// act on.
func StoreError(err error) error {
	switch {
	case err == nil || leaf.ClassOf(err).Err != nil:
		return err
	case errors.Is(err, segment.ErrRule):
		return fmt.Errorf("%w: %w", leaf.ErrConflict, err)
	case isOtherCluster(err):
		return fmt.Errorf("%w: %w; leaf serve with these settings and this data directory says what to do in each case", leaf.ErrConflict, err)
	case errors.Is(err, segment.ErrSchema), errors.Is(err, segment.ErrDenied):
		return fmt.Errorf("%w: %w", leaf.ErrNotReady, err)
	}
	return fmt.Errorf("%w: the database does not answer: %w", leaf.ErrNotReady, err)
}
