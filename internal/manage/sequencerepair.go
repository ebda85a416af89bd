package manage

import (
	"context"
	"errors"
	"fmt"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/sequence"
	"github.com/leaf-idgen/leaf/segment"
)

// repairPart is how many rows of a sequence one request repairs, all at the same time. Each node answers for all of them
// in one look at the board. More rows could take a node longer than a repair waits for its answer.
const repairPart = 64

// Rows that a repair of a sequence repairs.
const (
	// RowsLatched are the rows that are latched as far as the node knows that carries it out (where all use one cluster fence, only
	// its own latches), and those whose max_id waits for a repair.
	RowsLatched = "latched"
	RowsAll     = "all" // a row that no node has latched can be behind, too, after a restored backup
)

// SequenceRepair is what was done with a part of a sequence's rows.
type SequenceRepair struct {
	Rows []RowRepair `json:"rows"`           // in the order of their names
	Next int         `json:"next,omitempty"` // From of the request for the next part, 0 after the last one
}

// RowRepair is what was done with one row.
type RowRepair struct {
	Tag  string             `json:"tag"`
	Plan segment.RepairPlan `json:"plan"`
}

// RepairSequence repairs the next rows of a sequence at and after section From, each as RepairTag does, all at the same
// time: the nodes are asked once for all of them. With Above other than 0 that holds for each row. A row that is
// missing is released where it was latched. It may be repeated. Errors: those of RepairTag, for the first row that
// fails, after which other rows may be repaired; leaf.ErrUnknownTag if the sequence has no row, and none is latched.
type RepairSequence struct {
	Name  string `query:"sequence"`
	Rows  string `query:"rows"` // RowsLatched, RowsAll
	Above int64  `query:"above" default:"0" must:"must be a number"`
	From  int    `query:"from" default:"0" must:"must be a number"`
}

// PlanSequenceRepair returns what RepairSequence with the same arguments would do, or why it would refuse a row, and
// changes nothing.
type PlanSequenceRepair RepairSequence

func (q RepairSequence) validate() error     { return checkSequence(q.Name) }
func (q PlanSequenceRepair) validate() error { return checkSequence(q.Name) }

// check is of the node: a client need not know which rows there are to choose from.
func (q RepairSequence) check() error {
	if q.Rows != RowsLatched && q.Rows != RowsAll {
		return leaf.BadField("rows", q.Rows, fmt.Sprintf("must be %s or %s", RowsLatched, RowsAll))
	}
	if q.From < 0 || q.From >= sequence.Sections {
		return leaf.BadField("from", q.From, fmt.Sprintf("must be 0 to %d", sequence.Sections-1))
	}
	return q.validate()
}

func (q RepairSequence) run(ctx context.Context, c *Catalog) (SequenceRepair, error) {
	return q.part(ctx, c, func(ctx context.Context, alloc *segment.Allocator, row string) (segment.RepairPlan, error) {
		plan, err := alloc.RepairByPlan(ctx, row, q.Above)
		if plan.NoRow && errors.Is(err, leaf.ErrUnknownTag) {
			err = nil // it is released, and sequence create makes the row
		}
		return plan, err
	})
}

func (q PlanSequenceRepair) run(ctx context.Context, c *Catalog) (SequenceRepair, error) {
	return RepairSequence(q).part(ctx, c, func(ctx context.Context, _ *segment.Allocator, row string) (segment.RepairPlan, error) {
		return PlanRepair{Name: row, Above: q.Above}.run(ctx, c)
	})
}

// part calls do for the rows of one part, for all at the same time.
func (q RepairSequence) part(ctx context.Context, c *Catalog,
	do func(ctx context.Context, alloc *segment.Allocator, row string) (segment.RepairPlan, error),
) (SequenceRepair, error) {
	if err := q.check(); err != nil {
		return SequenceRepair{}, err
	}
	alloc, err := c.Engine(ctx)
	if err != nil {
		return SequenceRepair{}, err
	}
	there, err := c.sequenceRows(ctx, q.Name)
	if err != nil {
		return SequenceRepair{}, err
	}
	part := q.choose(there, alloc)
	if len(there) == 0 && len(part.Rows) == 0 && q.From == 0 {
		return SequenceRepair{}, fmt.Errorf("%w: sequence %q", leaf.ErrUnknownTag, q.Name)
	}
	if err := atOnce(len(part.Rows), func(i int) (err error) {
		row := &part.Rows[i]
		if row.Plan, err = do(ctx, alloc, row.Tag); err != nil {
			return fmt.Errorf("row %q: %w", row.Tag, err)
		}
		return nil
	}); err != nil {
		return SequenceRepair{}, err
	}
	return part, nil
}

// choose returns the rows of the part, without plans.
func (q RepairSequence) choose(there map[string]segment.Row, alloc *segment.Allocator) SequenceRepair {
	part := SequenceRepair{Rows: []RowRepair{}}
	for section := q.From; section < sequence.Sections; section++ {
		name := sequence.RowName(q.Name, section)
		row, ok := there[name]
		needed := alloc.Mark(name).Latched || row.MaxID < 0
		if !needed && (q.Rows == RowsLatched || !ok) {
			continue
		}
		if len(part.Rows) == repairPart {
			part.Next = section
			break
		}
		part.Rows = append(part.Rows, RowRepair{Tag: name})
	}
	return part
}

func (PlanSequenceRepair) forAdmins() {} // it asks all nodes, through rows of the database
