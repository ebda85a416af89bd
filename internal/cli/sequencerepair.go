package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/sequence"
	"github.com/leaf-idgen/leaf/segment"
)

type sequenceRepairCmd struct {
	storeFlags
	jsonFlag
	Name  string `arg:"" help:"Name of the sequence."`
	All   bool   `help:"Repair every row, not only those that are latched: after a restored backup, a row can be behind that no node has latched. Entities of rows that were not behind leave out some numbers."`
	Above int64  `placeholder:"N" help:"Issue nothing at or below N in any of these rows, and leave out the nodes that do not answer: N lies above every number of the sequence that is in use or in memory anywhere. (default: what the nodes say; all of them must answer)"`
	Plan  bool   `help:"Only show what the repair goes by and what comes of it; change nothing."`
}

// Help implements kong.HelpProvider.
func (sequenceRepairCmd) Help() string {
	return `A sequence has 1,024 rows, which are tags. After its database lost commits, nodes latch each row when it is used. This command does what leaf tag repair does, with the same rules, for the latched rows, 64 at a time: about 6 s for these, less than two minutes for all rows.

Start the nodes that are stopped, and run this command once, on any one node. If it is interrupted or fails, run it again. See leaf tag repair --help for what to do when a node does not answer.

A node does not know which rows other nodes have latched when all nodes use one cluster fence, nor those of a node whose fence file was rebuilt: then use --all.`
}

// Run repairs the rows of a sequence, part by part.
func (c *sequenceRepairCmd) Run(ctx context.Context, p Process) error {
	stop := sayLater(p.Stderr, "asking every node of the database for its highest numbers. This takes about 6 s for 64 rows")
	defer stop()
	q := manage.RepairSequence{Name: c.Name, Rows: manage.RowsLatched, Above: c.Above}
	if c.All {
		q.Rows = manage.RowsAll
	}
	return with(ctx, p, c, func(b manage.Backend) error {
		all := []manage.RowRepair{}
		for {
			part, err := c.part(ctx, b, q)
			if err != nil {
				return fmt.Errorf("sequence %s: %d rows are done: %w", printable(c.Name), len(all), err)
			}
			all = append(all, part.Rows...)
			if !c.json() {
				printRowRepairs(p.Stdout, part.Rows)
			}
			if part.Next == 0 {
				break
			}
			fmt.Fprintf(p.Stderr, "leaf: %d of %d rows\n", part.Next, sequence.Sections)
			q.From = part.Next
		}
		if c.json() {
			return printJSON(p.Stdout, manage.SequenceRepair{Rows: all})
		}
		return c.sum(p.Stdout, all)
	})
}

func (c *sequenceRepairCmd) part(ctx context.Context, b manage.Backend, q manage.RepairSequence) (manage.SequenceRepair, error) {
	if c.Plan {
		return manage.Ask(ctx, b, manage.PlanSequenceRepair(q))
	}
	return manage.Ask(ctx, b, q)
}

// printRowRepairs prints a line for each row.
func printRowRepairs(w io.Writer, rows []manage.RowRepair) {
	for _, r := range rows {
		was := fmt.Sprintf("max_id %d", r.Plan.Row)
		if r.Plan.NoRow {
			was = "no row"
		}
		then := fmt.Sprintf("first number %d", r.Plan.First)
		switch {
		case r.Plan.Refused != "":
			then = "refused: " + r.Plan.Refused
		case r.Plan.NoRow:
			then = fmt.Sprintf("a new row begins above %d", r.Plan.Above)
		}
		fmt.Fprintf(w, "%s: %s; %s\n", printable(r.Tag), was, then)
	}
}

// withNew returns names, followed by those of more that are not among them.
func withNew(names []string, more ...string) []string {
	for _, name := range more {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// sum prints what holds for all rows: which nodes did not answer, and what is left to do.
func (c *sequenceRepairCmd) sum(w io.Writer, rows []manage.RowRepair) error {
	silent, untold, alone, start, missing, refused := []string{}, []string{}, "", int64(0), 0, 0
	for _, r := range rows {
		for _, n := range r.Plan.Nodes {
			if n.State == segment.RepairNodeSilent {
				silent = withNew(silent, n.Node)
			}
		}
		if r.Plan.Refused == "" {
			untold = withNew(untold, r.Plan.Untold...)
		}
		start = max(start, r.Plan.First, r.Plan.Above+1)
		if r.Plan.NoRow {
			missing++
		}
		if r.Plan.Refused != "" {
			refused++
		}
		alone = r.Plan.Alone
	}
	if len(silent) > 0 {
		fmt.Fprintf(w, "nodes that do not answer: %s\n", printable(strings.Join(silent, ", ")))
	}
	if len(untold) > 0 {
		fmt.Fprintf(w, "not told: %s: %s\n", printable(strings.Join(untold, ", ")), untoldKeep)
	}
	if alone != "" {
		fmt.Fprintf(w, "other nodes are neither asked nor told: %s\n", alone)
	}
	if missing > 0 {
		fmt.Fprintf(w, "%d rows are missing: make them with leaf sequence create %s --start N, with N of at least %d\n", missing, printable(c.Name), start)
	}
	done := "repaired"
	if c.Plan {
		done = "to be repaired"
	}
	_, err := fmt.Fprintf(w, "%d rows of sequence %s %s\n", len(rows)-refused, printable(c.Name), done)
	return err
}
