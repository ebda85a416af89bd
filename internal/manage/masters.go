package manage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// errPart refuses a tag that has the name of a part: it would be taken for one.
func errPart(name string) error {
	tag, _, _, ok := segment.ParsePart(name)
	if !ok {
		return nil
	}
	return leaf.BadField("tag", name, fmt.Sprintf("is the form of the rows of a tag in several databases; leaf tag create makes those of a tag such as %q by itself", tag))
}

// createMasters makes the rows of a tag in several databases, and returns the tag as one. Rows that are there already
// stay: a command that was interrupted is run again, with the start that its refusal names. Error: leaf.ErrConflict if all
// rows are there, or if an ID of the tag could be repeated.
func (c *Catalog) createMasters(ctx context.Context, m *segment.Masters, row segment.NewRow) (Tag, error) {
	parts, err := m.Parts(row.Tag)
	if err == nil {
		err = fitsMasters(row.Options)
	}
	if err == nil {
		err = row.Validate()
	}
	if err != nil {
		return Tag{}, err
	}
	for _, part := range parts {
		if err := c.bound(ctx, part); err != nil {
			return Tag{}, err
		}
	}
	known, err := c.readMasters(ctx, row.Tag, m, parts)
	if err != nil {
		return Tag{}, err
	}
	missing, err := known.check(row)
	if err == nil {
		err = c.askMasters(ctx, known, missing, row)
	}
	if err != nil {
		return Tag{}, err
	}
	for _, i := range missing {
		of := row
		of.Tag = parts[i]
		if of.Start, err = m.Start(i, row.Start); err != nil {
			return Tag{}, err
		}
		if err := c.insert(ctx, of); err != nil {
			return Tag{}, fmt.Errorf("row %q of tag %q, which counts its own numbers: %w; run the command again: rows that are there stay as they are", parts[i], row.Tag, err)
		}
		if err := made(c.TagChanged(ctx, parts[i])); err != nil {
			return Tag{}, err
		}
	}
	var names []string
	for _, store := range m.Stores {
		names = append(names, c.storeName(store))
	}
	return Tag{Name: row.Tag, MaxID: row.Start, Step: row.Step, Description: row.Description, Options: row.Options, Store: strings.Join(names, ","), State: TagOK}, nil
}

// fitsMasters refuses options that say something of IDs: rows count numbers of their own, in no order with one another.
func fitsMasters(o segment.Options) error {
	const limit = " for a tag in several databases"
	switch o = o.Stored(); {
	case o.Format != "":
		return leaf.BadField("format", o.Format, "must be empty"+limit)
	case o.Strict():
		return leaf.BadField("order", o.Order, "must be plain"+limit)
	case o.Period != "":
		return leaf.BadField("period", o.Period, "must be none"+limit)
	}
	return nil
}

// mastersKnown is what is known of a tag in several databases before its rows are made.
type mastersKnown struct {
	masters *segment.Masters
	parts   []string
	rows    map[string]int64 // max_id of the parts that are there

	others  int64 // the end of the IDs of rows of the tag that the rule does not use
	missing int64 // the end of the IDs of parts that are not there
}

// note takes over that numbers of a row with this name, of the tag, are in use below high.
func (k *mastersKnown) note(name string, high int64) {
	_, end := segment.EndOf(name, high)
	switch _, there := k.rows[name]; {
	case there: // its next number is what its row says
	case slices.Contains(k.parts, name):
		k.missing = max(k.missing, end)
	default:
		k.others = max(k.others, end)
	}
}

// check returns the parts that are missing. Beside rows that are there, a missing row was perhaps lost with its database, and
// nothing is known of it, also where these rows are as this command makes them: nodes near the lost database took IDs there only.
func (k *mastersKnown) check(row segment.NewRow) (missing []int, err error) {
	begun := int64(0) // above the IDs of the rows that are there, and above those with which this command has made them
	for i, part := range k.parts {
		at, there := k.rows[part]
		if !there {
			missing = append(missing, i)
			continue
		}
		least, err := k.masters.Start(i, k.others)
		switch {
		case err != nil:
			return nil, err
		case at < least:
			return nil, fmt.Errorf("%w: IDs of tag %q below %d are in use from rows that the tag rule does not use now, and row %q would repeat some; stop all nodes, and Java servers for good, and run: leaf tag set '%[4]s' --max-id %d",
				leaf.ErrConflict, row.Tag, k.others, part, least)
		}
		begun = max(begun, k.masters.End(i, at+1))
	}
	end := max(k.others, k.missing)
	switch {
	case len(missing) == 0:
		return nil, fmt.Errorf("%w: tag %q exists: its rows are %s", leaf.ErrConflict, row.Tag, strings.Join(k.parts, ", "))
	case row.Start < begun:
		return nil, fmt.Errorf("%w: tag %q has rows already, but its row %q is not there. If it was lost with its database, no node can say which IDs it has issued: use as --start the highest ID of the tag in your own tables, or %d if that is higher, %s. "+
			"If it was never there, --start %[4]d is enough", leaf.ErrConflict, row.Tag, k.parts[missing[0]], max(begun, end), k.masters.Generously())
	case row.Start < end:
		return nil, k.tooLow(row, end)
	}
	return missing, nil
}

func (k *mastersKnown) tooLow(row segment.NewRow, end int64) error {
	return fmt.Errorf("%w: IDs of tag %q below %d are in use, so --start %d could repeat some; use --start %[3]d or more%[5]s", leaf.ErrConflict, row.Tag, end, row.Start, k.masters.StartOfNodes())
}

// askMasters refuses a start below an ID of a missing part that another node knows, as create does for a tag in one database. Where
// this node has issued numbers of one part, the tag was there before, and the other nodes may have issued those of the rest.
func (c *Catalog) askMasters(ctx context.Context, k *mastersKnown, missing []int, row segment.NewRow) error {
	if !slices.ContainsFunc(k.parts, func(part string) bool { return c.Mark(part).High > 0 }) {
		return nil
	}
	alloc, err := c.Engine(ctx)
	if err != nil {
		return err
	}
	return atOnce(len(missing), func(at int) error {
		i := missing[at]
		known, all, err := askNodes(ctx, alloc, k.parts[i])
		end := k.masters.End(i, known)
		switch {
		case err != nil, row.Start >= end:
			return err
		case all:
			return k.tooLow(row, end)
		}
		return errNotAll(k.parts[i], row.Start, k.masters.Generously())
	})
}

// readMasters reads what all databases of the rule, this node and the cluster fence know of a tag.
func (c *Catalog) readMasters(ctx context.Context, tag string, m *segment.Masters, parts []string) (*mastersKnown, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*c.Timeout)
	defer cancel()
	k := &mastersKnown{masters: m, parts: parts, rows: map[string]int64{}}
	said := map[string]int64{tag: 0} // by name of a row
	for _, part := range parts {
		said[part] = 0
	}
	say := func(name string, high int64) {
		if of, _ := segment.EndOf(name, 0); of == tag {
			said[name] = max(said[name], high)
		}
	}
	for i, s := range c.Stores {
		if err := c.readRows(ctx, i, k, tag, say); err != nil {
			return nil, StoreError(fmt.Errorf("look for tag %q in store %q: %w", tag, c.storeName(i), err))
		}
		if err := readBoard(ctx, s, say); err != nil {
			return nil, StoreError(fmt.Errorf("look for tag %q on the board of store %q: %w", tag, c.storeName(i), err))
		}
	}
	for name, high := range said {
		high = max(high, c.Mark(name).High)
		if c.ClusterEnd != nil {
			end, err := c.ClusterEnd(ctx, name)
			if err != nil {
				return nil, fmt.Errorf("look for tag %q in the cluster fence: %w", name, err)
			}
			high = max(high, end)
		}
		k.note(name, high)
	}
	return k, nil
}

func (c *Catalog) readRows(ctx context.Context, store int, k *mastersKnown, tag string, say func(name string, high int64)) error {
	s := c.Stores[store]
	row, err := s.Lookup(ctx, tag)
	switch {
	case errors.Is(err, segment.ErrSchema):
		return nil // without a table there are no rows
	case errors.Is(err, leaf.ErrUnknownTag):
	case err != nil:
		return err
	default:
		if err := Readable(c.storeName(store), row); err != nil {
			return err
		}
		say(tag, row.MaxID)
	}
	for after := tag + partsAfter; ; {
		const page = 100
		rows, err := s.RowsAfter(ctx, after, page)
		if err != nil {
			return err
		}
		for _, row := range rows {
			if of, _ := segment.EndOf(row.Tag, 0); of == tag {
				if err := c.readPart(store, k, row, say); err != nil {
					return err
				}
			}
			after = row.Tag
		}
		if len(rows) < page || !strings.HasPrefix(after, tag+partsAfter) {
			return nil
		}
	}
}

// readPart takes over where the numbers of a row end. One that the rule uses can be repaired, which asks all nodes.
func (c *Catalog) readPart(store int, k *mastersKnown, row segment.Row, say func(name string, high int64)) error {
	used := slices.Contains(k.parts, row.Tag) && c.Router.Route(row.Tag) == store
	switch {
	case !used:
		say(row.Tag, row.MaxID)
		return Readable(c.storeName(store), row)
	case row.Problem != nil:
		return fmt.Errorf("%w: row %q cannot be read: %w; %s", leaf.ErrConflict, row.Tag, row.Problem, segment.CorrectRow)
	case row.MaxID < 0:
		return fmt.Errorf("row %q: %w", row.Tag, segment.CheckDelete(row.MaxID))
	}
	k.rows[row.Tag] = row.MaxID
	return nil
}

// partsAfter comes behind the name of a tag in the names of its parts.
const partsAfter = "~"

// readBoard says what nodes have told the board of a database, if it has one.
func readBoard(ctx context.Context, s Store, say func(name string, high int64)) error {
	board, ok := s.(interface {
		Notices(ctx context.Context) ([]segment.Notice, error)
		AllAnswers(ctx context.Context) ([]segment.Answer, error)
	})
	if !ok {
		return nil
	}
	answers, err := board.AllAnswers(ctx)
	if errors.Is(err, segment.ErrSchema) && !errors.Is(err, segment.ErrDenied) {
		return nil
	}
	for _, x := range answers {
		say(x.Tag, x.High)
	}
	if err != nil {
		return err
	}
	notices, err := board.Notices(ctx)
	for _, n := range notices {
		say(n.Tag, max(n.Regress, n.Repaired))
	}
	return err
}
