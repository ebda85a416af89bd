package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/takeover"
	"github.com/leaf-idgen/leaf/segment"
)

type importCmd struct {
	storeFlags
	jsonFlag
	Source sourceFlags `embed:""`

	Apply   bool          `help:"Write the tags. Without this flag the command only shows its plan."`
	Stopped bool          `help:"The other service is stopped: none of its servers runs, and no program takes numbers from its database any more."`
	Gap     int64         `placeholder:"N" help:"How many numbers to leave to the other service, which goes on beside Leaf. Let its database refuse more than that: the plan shows the statement. Only for a tag whose name never had one."`
	Wait    time.Duration `default:"3s" placeholder:"TIME" help:"How long to look whether the other service still takes numbers, before anything is written. (default 3s)"`
	Step    int64         `placeholder:"N" help:"Step of new tags. (default: that of the other service, or 1000; 1 to 1073741824)"`
}

// Help implements kong.HelpProvider.
func (importCmd) Help() string {
	return `Makes tags whose IDs begin above every number that another ID service has handed out. Without --apply it shows its plan and writes nothing.

  leaf import tinyid --from-file tinyid.url
  leaf import tinyid --from-file tinyid.url --tag order=order_biz --stopped --apply
  leaf import autoincrement --from-file shop.url --tag orders --stopped --apply

It only goes forward: it never lowers max_id, and leaves a tag alone that issues no number of the other service. So it can be repeated. A tag that is below is raised, and every node drops the IDs that it holds from before. Nodes also drop them where max_id is high enough, and what they hold in memory may not be, because the tag was used before. So every node is asked, by the tables of leaf schema apply. Programs with a cache of the Go client keep what they hold: the plan says to restart them.

With --stopped the command reads the other service twice, and refuses if it moved in between. After it has written, it reads a third time. It cannot see a service that pauses: do what the plan shows under "to be sure", after which the database of the other service refuses to hand out a number of Leaf's. With --gap the other service goes on; leaf compare says whether it comes near. A tag of the same name that was there before may have had numbers of the gap, so such a name is refused.

` + sourceHelp + `

Exit codes beside those of leaf --help:
  1  done or planned, and some numbers can have been handed out by both
  5  refused: nothing was written`
}

// Run takes over the numbers of another service.
func (c *importCmd) Run(ctx context.Context, p Process) error {
	if err := c.check(); err != nil {
		return err
	}
	source, err := c.Source.open(p, &c.Settings, "import")
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // it was only read
	return with(ctx, p, c, func(b manage.Backend) error {
		t := &takingOver{importCmd: c, backend: b, source: source, process: p, asked: map[string]segment.RepairPlan{}}
		err := t.run(ctx)
		if t.plans == nil {
			return err
		}
		if c.JSON {
			return errors.Join(printJSON(p.Stdout, map[string]any{"applied": t.wrote, "tags": t.plans}), err)
		}
		return errors.Join(printPlans(p.Stdout, t.plans, t.wrote), err)
	})
}

func (c *importCmd) check() error {
	switch {
	case c.Gap < 0 || c.Gap > segment.MaxMaxID:
		return leaf.BadField("gap", c.Gap, fmt.Sprintf("must be 0 to %d", int64(segment.MaxMaxID)))
	case c.Step < 0 || c.Step > segment.MaxStep:
		return leaf.BadField("step", c.Step, fmt.Sprintf("must be 1 to %d", int64(segment.MaxStep)))
	case c.Wait < 0:
		return leaf.BadField("wait", c.Wait, "must be 0s or more")
	case c.Apply && !c.Stopped && c.Gap == 0:
		return &usageError{errors.New("--apply needs --stopped, if the other service is stopped, or --gap N, if it goes on"), "leaf import --help"}
	}
	return nil
}

// takingOver is one run of the command.
type takingOver struct {
	*importCmd

	backend manage.Backend
	source  takeover.Source
	process Process

	asked  map[string]segment.RepairPlan // what nodes answered, of tags
	plans  []takeover.Plan               // nil: none was made
	wrote  bool                          // some tag
	untold []string                      // nodes that a repair did not reach
}

func (t *takingOver) run(ctx context.Context) error {
	before, err := t.Source.read(ctx, t.source)
	if err != nil {
		return err
	}
	if err := t.plan(ctx, before); err != nil {
		return err
	}
	if !t.Apply || !t.writes() {
		return errors.Join(t.told(), t.found())
	}
	if err := t.pause(ctx); err != nil {
		return err
	}
	now, err := t.Source.read(ctx, t.source)
	if err != nil {
		return err
	}
	if moved := takeover.Moved(countersOf(before), countersOf(now)); t.Stopped && len(moved) > 0 {
		return fmt.Errorf("%w: nothing was written: the other service is not stopped, its counter %q moves on, now to %d (%s). Stop it and repeat the command; or leave it running, with --gap N instead of --stopped",
			leaf.ErrConflict, moved[0].Name, max(moved[0].End, moved[0].Filled), moved[0].From)
	}
	if err := t.plan(ctx, now); err != nil {
		return err
	}
	for i := range t.plans {
		if err := t.write(ctx, &t.plans[i]); err != nil {
			return fmt.Errorf("tag %q: %w", t.plans[i].Tag, err)
		}
	}
	return errors.Join(t.told(), t.found(), t.lookBack(ctx, now))
}

// plan makes the plans, and refuses all if one is refused.
func (t *takingOver) plan(ctx context.Context, all []numbering) error {
	t.plans = nil
	rows, err := t.rows(ctx, all)
	if err != nil {
		return err
	}
	t.plans = []takeover.Plan{}
	refused, reason := 0, ""
	for i, n := range all {
		p := takeover.NewPlan(n.tag, rows[i], n.counters, t.options())
		if p.Action == takeover.Refuse {
			if refused++; reason == "" {
				reason = fmt.Sprintf("tag %q: %s", n.tag, p.Reason)
			}
		}
		t.plans = append(t.plans, p)
	}
	if refused > 0 {
		return fmt.Errorf("%w: nothing was written: %d of %d tags cannot be taken over; --tag takes the others. %s", leaf.ErrConflict, refused, len(t.plans), reason)
	}
	return nil
}

func (t *takingOver) options() takeover.Options {
	return takeover.Options{Gap: t.Gap, Stopped: t.Stopped, Step: t.Step}
}

// rows returns what is known of the tags. The audit log forgets, and does not tell of rows that were made or deleted with SQL. So before
// anything is written, and where the other service goes on, all nodes and databases are asked for other numbers of the tags.
func (t *takingOver) rows(ctx context.Context, all []numbering) ([]takeover.Row, error) {
	rows, compared := make([]takeover.Row, len(all)), make([]takeover.Comparison, len(all))
	var ask []string
	for i, n := range all {
		row, err := rowOf(ctx, t.backend, n.tag)
		if err != nil {
			return nil, err
		}
		rows[i], compared[i] = row, takeover.Compare(n.tag, row, n.counters)
		_, asked := t.asked[n.tag]
		unused := !row.Exists && !row.Deleted && row.Problem == "" // as far as the log tells
		if (t.Apply || t.options().GoesOn()) && (unused || compared[i].Verdict == takeover.Apart) && !asked {
			ask = append(ask, n.tag)
		}
	}
	if err := t.ask(ctx, ask); err != nil {
		return nil, err
	}
	for i, n := range all {
		if p, asked := t.asked[n.tag]; asked {
			if err := t.heed(&rows[i], compared[i], p); err != nil {
				return nil, err
			}
		}
	}
	return rows, nil
}

// askAtOnce is for how many tags nodes are asked at a time.
const askAtOnce = 8

// ask asks all nodes for their numbers of tags. The first call stands alone, because it starts the engine of a command without a node.
func (t *takingOver) ask(ctx context.Context, tags []string) error {
	done := sayLater(t.process.Stderr, fmt.Sprintf("asking every node for its numbers of %d tags. This takes about 4 s for the first tag, and for every %d others", len(tags), askAtOnce))
	defer done()
	for next, some := 0, 1; next < len(tags); next, some = next+some, askAtOnce {
		asked := tags[next:min(next+some, len(tags))]
		plans, errs := make([]segment.RepairPlan, len(asked)), make([]error, len(asked))
		var asking sync.WaitGroup
		for i, tag := range asked {
			asking.Go(func() { plans[i], errs[i] = manage.Ask(ctx, t.backend, manage.PlanRepair{Name: tag}) })
		}
		asking.Wait()
		for i, tag := range asked {
			if errs[i] != nil {
				return fmt.Errorf("tag %q: nothing was written: %w", tag, errs[i])
			}
			t.asked[tag] = plans[i]
		}
	}
	return nil
}

// heed adds to a row what nodes and databases have answered.
func (t *takingOver) heed(row *takeover.Row, c takeover.Comparison, p segment.RepairPlan) error {
	goesOn, lowest := t.options().GoesOn(), c.End+c.Left // of the row that is there
	var silent []string
	other, highest := false, int64(0)
	note := func(end int64, equal bool) {
		highest = max(highest, end)
		other = other || end > 0 && (!row.Exists || end < lowest || equal && end == lowest)
	}
	for _, end := range []int64{p.Posted, p.Deleted, p.ClusterFence} {
		note(end, goesOn)
	}
	for _, n := range p.Nodes {
		note(n.End, true) // leaf tag create names the end of what nodes hold
		if n.State == segment.RepairNodeSilent {
			silent = append(silent, n.Node)
		}
	}
	if row.Exists && !goesOn && p.Posted >= lowest { // nodes that have answered have dropped them
		other = false
	}
	switch {
	case goesOn && len(silent) > 0:
		return fmt.Errorf("%w: nothing was written: --gap is for a name that never had a tag, and these nodes do not say whether they know numbers of %q: %s. Repeat the command when they answer; or stop the other service, and use --stopped. "+
			endedNode, leaf.ErrNotReady, c.Tag, strings.Join(silent, ", "))
	case other:
		row.Deleted, row.Lowest, row.Unknown = true, 0, unlogged
		if len(silent) == 0 { // else leaf tag create says what start is safe
			row.Ended = highest
		}
	case t.Apply:
		t.untold = withNew(t.untold, silent...)
	}
	return nil
}

func (t *takingOver) writes() bool {
	for _, p := range t.plans {
		if p.Action != takeover.Nothing {
			return true
		}
	}
	return false
}

// pause gives the other service time to move.
func (t *takingOver) pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(t.Wait):
		return nil
	}
}

// write carries out a plan, by the operations of leaf tag create, set and repair.
func (t *takingOver) write(ctx context.Context, p *takeover.Plan) error {
	switch p.Action {
	case takeover.Create:
		row := segment.NewRow{Tag: p.Tag, Start: p.First, Step: p.Step}
		_, err := manage.Ask(ctx, t.backend, manage.CreateTag{NewRow: row})
		if errors.Is(err, leaf.ErrConflict) {
			err = fmt.Errorf("%w. If it names another start of the tag, make it with leaf tag create TAG --start N, and repeat this command", err)
		}
		if err != nil {
			return err
		}
	case takeover.Raise:
		first := p.First
		if first > p.Row { // else the row is high enough, and nodes may hold IDs from below
			if _, err := manage.Ask(ctx, t.backend, manage.SetTag{Name: p.Tag, Change: segment.Change{MaxID: &first}}); err != nil {
				return err
			}
		}
	default:
		return nil
	}
	t.wrote = true
	if !p.Drop {
		return nil
	}
	done := sayLater(t.process.Stderr, fmt.Sprintf("asking every node for the IDs of tag %s that it holds", printable(p.Tag)))
	defer done()
	r, err := dropBelow(ctx, t.backend, p.Tag, p.First)
	if err != nil {
		return fmt.Errorf("max_id is %d now, and a node may still issue IDs from below that it holds: %w", p.First, err)
	}
	p.First = r.Plan.First
	t.untold = withNew(t.untold, r.Plan.Untold...)
	return nil
}

// mostReturns is how often an import repairs a tag while nodes stop.
const mostReturns = 3

// dropBelow repairs a tag: all nodes are asked, and drop what they hold at or below the number by which the repair goes. That
// number is first or above, unless the row was below first when the repair read it: a node that stops returns its unused IDs, so
// the row may have gone back. Then the row is raised, and what nodes have taken from below meanwhile is dropped by another
// repair. Where IDs go on after the repair says less: nodes that took ranges during it have moved the row.
func dropBelow(ctx context.Context, b manage.Backend, tag string, first int64) (r manage.Repair, err error) {
	for range mostReturns {
		if r, err = manage.Ask(ctx, b, manage.RepairTag{Name: tag}); err != nil || r.Plan.Above >= first {
			return r, err
		}
		_, err := manage.Ask(ctx, b, manage.SetTag{Name: tag, Change: segment.Change{MaxID: &first}})
		if err != nil && !errors.Is(err, leaf.ErrConflict) { // it is above already, or the next repair says what is wrong
			return r, err
		}
	}
	return r, fmt.Errorf("%w: max_id went back to %d, because nodes that stop return unused IDs: repeat the command when no node is stopped", leaf.ErrConflict, r.Plan.Row)
}

// endedNode is what an administrator knows of a node that does not answer and may have ended.
const endedNode = "A node that has ended issues nothing, and is named for 24 hours if it could not tell the database so"

// told is the error if a node may still issue IDs from before: under a cluster fence a repair does not wait for nodes that do
// not answer.
func (t *takingOver) told() error {
	if len(t.untold) == 0 {
		return nil
	}
	return fmt.Errorf("%w: the tags are written, and these nodes do not answer: %s. Until they read of it, they may issue IDs that they hold in memory and that the other service has handed out. "+
		"Stop these nodes, or let them reach the database, and repeat the command until it names none. "+endedNode, leaf.ErrNotReady, strings.Join(t.untold, ", "))
}

// lookBack reads the other service after the tags were written.
func (t *takingOver) lookBack(ctx context.Context, planned []numbering) error {
	now, err := t.Source.read(ctx, t.source)
	if err != nil {
		return fmt.Errorf("the tags are written, and the other service cannot be read again: %w", err)
	}
	for i, p := range t.plans {
		for _, c := range takeover.Moved(planned[i].counters, countersOf(now)) {
			if first := max(p.First, p.Row); t.Stopped || c.End > first {
				return fmt.Errorf("tag %q goes on at %d, and the other service is not stopped: its counter %q went on to %d (%s). Let no client take IDs of the tag. Stop the other service, then repeat the command", p.Tag, first, c.Name, max(c.End, c.Filled), c.From)
			}
		}
	}
	return nil
}

// found is the error if numbers can have been handed out by both services.
func (t *takingOver) found() error {
	for _, p := range t.plans {
		switch {
		case p.Verdict == takeover.Meet:
			return fmt.Errorf("tag %q: %d numbers can have been handed out by both services, the first range is %d to %d; look for them in your tables", p.Tag, p.Numbers, p.Both.Lo, p.Both.Hi-1)
		case p.Verdict == takeover.Unknown && p.Drop: // it has issued numbers, perhaps under a row that was deleted
			return fmt.Errorf("tag %q: its numbers below %d can have been handed out by both services: %s; look for them in your tables", p.Tag, max(p.Row, p.End), p.Reason)
		}
	}
	return nil
}
