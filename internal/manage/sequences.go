package manage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/sequence"
	"github.com/leaf-idgen/leaf/segment"
)

// Sequence is what a change of a sequence has done. A sequence is its rows, one for each section.
type Sequence struct {
	Name string `json:"sequence"`
	Rows int    `json:"rows"` // that were made or deleted
}

// CreateSequence makes the rows of a sequence, each in strict order with a fixed step. Rows that are there already stay:
// a call that was interrupted is made again. Errors: leaf.ErrConflict if all rows are there, or if numbers could be
// repeated; leaf.ErrNotReady as of CreateTag; leaf.ErrBadRequest.
type CreateSequence struct {
	Name        string `json:"sequence"`
	Start       int64  `json:"start,string"` // the first number of each entity
	Step        int64  `json:"step"`         // of each row, sequence.MinStep to sequence.MaxStep
	Description string `json:"description,omitempty"`
}

func (q CreateSequence) validate() error {
	return errors.Join(checkSequence(q.Name), checkText("description", q.Description))
}

// checkSequence returns leaf.ErrBadRequest for a name whose rows would have no valid names.
func checkSequence(name string) error {
	if err := leaf.ValidateTag(sequence.RowName(name, 0)); name == "" || err != nil {
		return leaf.BadField("sequence", name, fmt.Sprintf("must be a tag of at most %d characters", leaf.MaxTagLen-len(sequence.RowName("", 0))))
	}
	return nil
}

func (q CreateSequence) row(section int) segment.NewRow {
	return segment.NewRow{
		Tag: sequence.RowName(q.Name, section), Start: q.Start, Step: q.Step, Description: q.Description,
		Options: segment.Options{Order: segment.OrderStrict, FixedStep: true},
	}
}

func (q CreateSequence) run(ctx context.Context, c *Catalog) (Sequence, error) {
	if q.Step < sequence.MinStep || q.Step > sequence.MaxStep {
		return Sequence{}, leaf.BadField("step", q.Step, fmt.Sprintf("must be %d to %d", sequence.MinStep, sequence.MaxStep))
	}
	if err := cmp.Or(q.validate(), q.row(0).Validate()); err != nil {
		return Sequence{}, err
	}
	rows, err := c.sequenceRows(ctx, q.Name)
	if err == nil {
		err = q.check(c, rows)
	}
	if err != nil {
		return Sequence{}, err
	}
	if err := q.askNodes(ctx, c, rows); err != nil {
		return Sequence{}, err
	}
	made, err := c.eachSection(ctx, func(ctx context.Context, section int) (bool, error) {
		row := q.row(section)
		if _, there := rows[row.Tag]; there {
			return false, nil
		}
		return true, c.change(ctx, row.Tag, func() error { return c.insert(ctx, row) })
	})
	if err != nil {
		return Sequence{}, fmt.Errorf("%d of the %d rows of sequence %q are there now: %w; run the command again: rows that are there stay as they are",
			len(rows)+made, sequence.Sections, q.Name, err)
	}
	return Sequence{q.Name, made}, nil
}

// check refuses rows that could repeat numbers. Beside rows that have issued numbers, a missing row was perhaps lost with
// its database, and nothing is known of it. So was one before a row that is there, whether that has issued numbers or not:
// rows are made in their order, so that a call that was interrupted leaves the first ones.
func (q CreateSequence) check(c *Catalog, rows map[string]segment.Row) error {
	end, high, missing := int64(0), int64(0), ""
	for section := range sequence.Sections {
		name := sequence.RowName(q.Name, section)
		row, there := rows[name]
		switch {
		case c.Router.Masters(name) != nil:
			return leaf.BadField("sequence", q.Name, "must not match a tag rule of several databases: its rows are in strict order")
		case there && (row.Options.Order != segment.OrderStrict || !row.Options.FixedStep):
			return fmt.Errorf("%w: tag %q exists, and is no row of a sequence: it has no strict order or no fixed step; %s; if it never was one, use another name", leaf.ErrConflict, name, sequence.OptionsAgain(name))
		case there && row.MaxID < 0: // it waits for a repair, and does not show whether it has issued numbers
			return fmt.Errorf("row %q: %w", name, segment.CheckDelete(row.MaxID))
		case there && missing != "":
			end = max(end, row.MaxID+1)
		case there:
			end = max(end, row.MaxID)
		default:
			high, missing = max(high, c.Mark(name).High), cmp.Or(missing, name)
		}
	}
	switch {
	case missing == "":
		return fmt.Errorf("%w: sequence %q exists", leaf.ErrConflict, q.Name)
	case high > q.Start:
		return fmt.Errorf("%w: this node has issued numbers of sequence %q whose rows are not there, so --start %d could repeat some; use another name for a new sequence; to have this one again, use --start %d or more%s",
			leaf.ErrConflict, q.Name, q.Start, high, segment.StartOfNodes())
	case end > q.Start:
		return fmt.Errorf("%w: sequence %q was there before, but its row %q is not there now. If the row was lost with its database, no node can say which numbers it has issued: use as --start the highest number of the sequence in your own tables, "+
			"plus "+segment.Margin+"; and not below %d. If it was never there, --start %[4]d is enough", leaf.ErrConflict, q.Name, missing, end)
	}
	return nil
}

// fitsSequence refuses a change after which a row of a sequence would give its entities no numbers, or numbers that jump
// far: a period can never be taken away again. A row of that name without strict order or a fixed step is that of no sequence.
func fitsSequence(name string, row segment.Row, change segment.Change) error {
	if row.Options.Order != segment.OrderStrict || !row.Options.FixedStep {
		return nil
	}
	step := row.Step
	if change.Step != nil {
		step = *change.Step
	}
	after := change.ApplyTo(row.Options).Stored()
	if after.Order == segment.OrderStrict && after.FixedStep && after.Period == "" && sequence.MinStep <= step && step <= sequence.MaxStep {
		return nil
	}
	return fmt.Errorf("%w: tag %q is a row of sequence %q, which gives numbers with strict order, a fixed step of %d to %d and no period only; change the other fields alone",
		leaf.ErrConflict, row.Tag, name, sequence.MinStep, sequence.MaxStep)
}

// askAtOnce is about how many missing rows of a sequence the nodes are asked at once. All 1,024 are asked within the
// time of a request.
const askAtOnce = 256

// askNodes refuses a start below a number that another node knows of a missing row. Where this node has issued numbers of
// one row, the sequence was there before, and the other nodes have issued those of the rest.
func (q CreateSequence) askNodes(ctx context.Context, c *Catalog, there map[string]segment.Row) error {
	var lost []string
	before := false
	for section := range sequence.Sections {
		name := sequence.RowName(q.Name, section)
		before = before || c.Mark(name).High > 0
		if _, ok := there[name]; !ok {
			lost = append(lost, name)
		}
	}
	if !before || len(lost) == 0 {
		return nil
	}
	alloc, err := c.Engine(ctx)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(lost, askAtOnce) {
		if err := atOnce(len(part), func(i int) error { return checkStart(ctx, alloc, segment.NewRow{Tag: part[i], Start: q.Start}) }); err != nil {
			return err
		}
	}
	return nil
}

// atOnce calls do with 0 to n-1, all at the same time, and returns the error of the first of them that has one.
func atOnce(n int, do func(i int) error) error {
	errs := make([]error, n)
	var calls sync.WaitGroup
	for i := range n {
		calls.Go(func() { errs[i] = do(i) })
	}
	calls.Wait()
	return cmp.Or(errs...)
}

// DeleteSequence removes the rows of a sequence. A call that was interrupted is made again. Error: leaf.ErrUnknownTag if
// none is there.
type DeleteSequence struct {
	Name string `query:"sequence"`
}

func (q DeleteSequence) validate() error { return checkSequence(q.Name) }

func (q DeleteSequence) run(ctx context.Context, c *Catalog) (Sequence, error) {
	if err := q.validate(); err != nil {
		return Sequence{}, err
	}
	rows, err := c.sequenceRows(ctx, q.Name)
	if err != nil {
		return Sequence{}, err
	}
	if len(rows) == 0 {
		return Sequence{}, fmt.Errorf("%w: sequence %q", leaf.ErrUnknownTag, q.Name)
	}
	deleted, err := c.eachSection(ctx, func(ctx context.Context, section int) (bool, error) {
		name := sequence.RowName(q.Name, section)
		if _, there := rows[name]; !there {
			return false, nil
		}
		return true, c.change(ctx, name, func() error { return c.delete(ctx, name) })
	})
	if err != nil {
		return Sequence{}, fmt.Errorf("%d of the %d rows of sequence %q are deleted: %w; run the command again", deleted, len(rows), q.Name, err)
	}
	return Sequence{q.Name, deleted}, nil
}

// sequenceRows reads the rows of a sequence that are there, by name.
func (c *Catalog) sequenceRows(ctx context.Context, name string) (map[string]segment.Row, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*c.Timeout)
	defer cancel()
	const page = 512
	found := map[string]segment.Row{}
	first, last := sequence.RowName(name, 0), sequence.RowName(name, sequence.Sections-1)
	for i, s := range c.Stores {
		for after := first[:len(first)-1]; ; {
			rows, err := s.RowsAfter(ctx, after, page)
			if err != nil {
				return nil, StoreError(fmt.Errorf("read the rows of sequence %q: %w", name, err))
			}
			for _, row := range rows {
				if of, _, ok := sequence.ParseRow(row.Tag); ok && of == name && c.Holds(i, row.Tag) {
					found[row.Tag] = row
				}
				after = row.Tag
			}
			if len(rows) < page || after >= last {
				break
			}
		}
	}
	return found, nil
}

// eachSection calls do for every section, until one fails. It returns how many calls have changed something. It makes one
// call at a time: those to a SQLite file would wait for each other until their time is over.
func (c *Catalog) eachSection(ctx context.Context, do func(ctx context.Context, section int) (changes bool, err error)) (changed int, err error) {
	for section := range sequence.Sections {
		changes, err := do(ctx, section)
		_, made := errors.AsType[*madeError](err)
		if changes && (err == nil || made) {
			changed++
		}
		if err != nil {
			return changed, err
		}
	}
	return changed, nil
}
