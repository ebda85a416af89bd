package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
)

// catalog is what the two Backends of this package share: the rows of all
// databases, joined with the fence of a node.
type catalog struct {
	dbs     *databases
	timeout time.Duration // of one call; reading all rows has ten times as much
	mark    func(tag string) segment.Mark
}

func (c *catalog) tags(ctx context.Context) ([]manage.Tag, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*c.timeout)
	defer cancel()
	all := []manage.Tag{}
	for i, s := range c.dbs.stores {
		rows, err := s.Rows(ctx)
		if err != nil {
			return nil, storeError(fmt.Errorf("list tags: %w", err))
		}
		for _, row := range rows {
			// A row that the rule sends elsewhere issues nothing: it is not this tag.
			if r := c.dbs.router.Route(row.Tag); r == i || len(c.dbs.stores) == 1 {
				all = append(all, c.describe(i, row))
			}
		}
	}
	slices.SortFunc(all, func(a, b manage.Tag) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// tagsAfter returns at most limit of the tags behind after, in the order of their names'
// bytes, and the name behind which the next page begins, "" if there is none. It reads at
// most one row more from each database. A page can be shorter than limit although another
// one follows: rows that the rule sends to another database are read and left out.
func (c *catalog) tagsAfter(ctx context.Context, after string, limit int) (page []manage.Tag, next string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*c.timeout)
	defer cancel()
	page = []manage.Tag{}
	for i, s := range c.dbs.stores {
		rows, err := s.RowsAfter(ctx, after, limit+1)
		if err != nil {
			return nil, "", storeError(fmt.Errorf("list tags: %w", err))
		}
		if len(rows) > limit { // what lies behind its last row is not known
			if end := rows[limit-1].Tag; next == "" || end < next {
				next = end
			}
			rows = rows[:limit]
		}
		for _, row := range rows {
			if r := c.dbs.router.Route(row.Tag); r == i || len(c.dbs.stores) == 1 {
				page = append(page, c.describe(i, row))
			}
		}
	}
	if next != "" {
		page = slices.DeleteFunc(page, func(t manage.Tag) bool { return t.Name > next })
	}
	slices.SortFunc(page, func(a, b manage.Tag) int { return strings.Compare(a.Name, b.Name) })
	if len(page) > limit {
		page, next = page[:limit], page[limit-1].Name
	}
	return page, next, nil
}

func (c *catalog) tag(ctx context.Context, name string) (manage.Tag, error) {
	i, err := c.dbs.route(name)
	if err != nil {
		return manage.Tag{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	row, err := c.dbs.stores[i].Lookup(ctx, name)
	if err != nil {
		return manage.Tag{}, storeError(err)
	}
	return c.describe(i, row), nil
}

func (c *catalog) describe(store int, row segment.Row) manage.Tag {
	t := manage.Tag{
		Name: row.Tag, MaxID: row.MaxID, Step: row.Step, Description: row.Description, UpdateTime: row.UpdateTime,
		MinStep: row.Options.MinStep, MaxStep: row.Options.MaxStep, FixedStep: row.Options.FixedStep,
	}
	if len(c.dbs.stores) > 1 {
		t.Store = c.dbs.router.Stores()[store].Name
	}
	m := c.mark(row.Tag)
	t.Fence, t.State = m.High, manage.TagOK
	if m.Latched {
		t.State = manage.TagLatched
	}
	return t
}

// create inserts a row. A start below a node's fence would be refused at its first load, and
// the tag latched; a node without one would issue what others have issued. engine is asked
// for only where the tag was there before.
func (c *catalog) create(ctx context.Context, tag manage.NewTag, engine func(context.Context) (*segment.Allocator, error)) error {
	i, err := c.dbs.route(tag.Name)
	if errors.Is(err, leaf.ErrUnknownTag) {
		err = leaf.BadField("tag", tag.Name, "no tag-rule covers it: every database has a rule, and none matches")
	}
	if err != nil {
		return err
	}
	if tag.Name == "." || tag.Name == ".." {
		return leaf.BadField("tag", tag.Name, "must not be a dot or two: HTTP clients take such a name out of the path")
	}
	if c.mark(tag.Name).High > 0 {
		if _, err := c.tag(ctx, tag.Name); err == nil {
			return fmt.Errorf("%w: tag %q exists", leaf.ErrConflict, tag.Name)
		}
		alloc, err := engine(ctx)
		if err == nil {
			err = checkStart(ctx, alloc, tag.Name, tag.Start)
		}
		if err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return storeError(c.dbs.stores[i].Create(ctx, segment.NewRow{
		Tag: tag.Name, Start: tag.Start, Step: tag.Step, Description: tag.Description,
		Options: segment.Options{MinStep: tag.MinStep, MaxStep: tag.MaxStep, FixedStep: tag.FixedStep},
	}))
}

func (c *catalog) set(ctx context.Context, name string, change manage.TagChange) error {
	i, err := c.dbs.route(name)
	if err != nil {
		return err
	}
	if change == (manage.TagChange{}) {
		return fmt.Errorf("%w: nothing to change: name at least one field", leaf.ErrBadRequest)
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return storeError(c.dbs.stores[i].Update(ctx, name, segment.Change(change)))
}

func (c *catalog) delete(ctx context.Context, name string) error {
	i, err := c.dbs.route(name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	return storeError(c.dbs.stores[i].Delete(ctx, name))
}
