package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
)

// RuleChange says that ApplySchema records the configured tag rule in place of another one, and
// what becomes of databases that the other rule has and the configured one has not: nodes with
// the other rule take ranges there until the command has closed it for them.
type RuleChange struct {
	LeaveOut []string // URLs of such databases
	Lost     []string // names, in the other rule, of those that no node can reach ever again

	// Above is at least as high as all IDs of tags that lived in several databases of which one is lost; 0: not given.
	Above int64
}

// runningFor is how long after its last entry on the list of a database a node counts as
// running. A node enters once a minute.
const runningFor = 2 * time.Minute

// ruleChange is a RuleChange under way, or the first recording of a rule.
type ruleChange struct {
	o       *offline
	first   bool   // no database has a rule before
	command string // its name in the databases
	lost    []string
	above   int64               // of RuleChange
	stores  []*sqldb.Store      // those of the new rule, and behind them those that it leaves out
	changes []*sqldb.RuleChange // of each, nil where it was not begun
	ends    []map[string]int64  // by database of the new rule: where numbers of tags without a row there end
}

func (o *offline) newRuleChange(c *RuleChange) (*ruleChange, error) {
	if c.Above < 0 || c.Above >= segment.MaxMaxID {
		return nil, leaf.BadField("above", c.Above, fmt.Sprintf("must be 0 to %d", int64(segment.MaxMaxID-1)))
	}
	r := &ruleChange{o: o, command: rand.Text(), lost: c.Lost, above: c.Above}
	for _, s := range o.dbs.stores {
		db, ok := s.(sqlStore)
		if !ok {
			return nil, notInEtcd("a change of the tag rule", s.Redacted())
		}
		r.stores = append(r.stores, db.Store)
	}
	for _, url := range c.LeaveOut {
		s, err := sqldb.Open(url, sqldb.Config{ConnectTimeout: o.cfg.ConnectTimeout, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return nil, errors.Join(fmt.Errorf("--leave-out: %w", err), r.close())
		}
		r.stores = append(r.stores, s)
	}
	r.changes = make([]*sqldb.RuleChange, len(r.stores))
	return r, nil
}

// close closes the databases that the new rule leaves out.
func (r *ruleChange) close() (err error) {
	for _, s := range r.stores[len(r.o.dbs.stores):] {
		err = errors.Join(err, s.Close())
	}
	return err
}

// isLeftOut reports whether the new rule has not the database i.
func (r *ruleChange) isLeftOut(i int) bool { return i >= len(r.o.dbs.stores) }

// name returns what texts call the database i.
func (r *ruleChange) name(i int) string {
	if r.isLeftOut(i) {
		return r.stores[i].Redacted()
	}
	return r.o.dbs.name(i)
}

// change is what the audit log says of accept.
func (r *ruleChange) change() manage.Change {
	type rule struct {
		Rule   string `json:"rule"` // its fingerprint
		Stores string `json:"stores"`
	}
	c := manage.Change{Operation: "schema apply --accept-rule", Object: "tag rule"}
	if r.changes[0] != nil {
		if before := r.changes[0].Before(); before != nil {
			c.From = rule{before.Rule, before.Stores}
		}
	}
	is := r.o.dbs.router.Binding(0)
	c.To = rule{is.Rule, is.Stores}
	return c
}

// accept records the configured rule. It first takes the rule away from each database: from then
// on no node binds it or takes a range there, by whatever rule, and the rows are compared as they
// stay. After a refusal each database has the rule that it had.
func (r *ruleChange) accept(ctx context.Context) error {
	for _, step := range r.refusable() {
		if err := step(ctx); err != nil {
			return r.undo(ctx, err)
		}
	}
	for _, step := range r.final() {
		if err := step(ctx); err != nil {
			return fmt.Errorf("%w; the change of the rule has not ended: run the command again, with the same rule", err)
		}
	}
	return nil
}

// ruleStep is a part of a command. Other commands can come between two parts, and the command can
// be killed there.
type ruleStep func(ctx context.Context) error

// refusable are the steps after which all can be undone. Those that leave a database out are not
// among them: another command with the rule may have done the same, and goes on.
func (r *ruleChange) refusable() (steps []ruleStep) {
	for i := range r.stores {
		steps = append(steps, func(ctx context.Context) error { return r.begin(ctx, i) })
	}
	steps = append(steps, func(context.Context) error { return r.checkNames() }, r.checkMoved, r.keepEnds)
	return append(steps, r.inOrder(r.decide, withoutRecord, withRecord)...)
}

// final are the steps that record the rule, after those that leave databases out.
func (r *ruleChange) final() []ruleStep {
	accept := func(ctx context.Context, c *sqldb.RuleChange) error { return c.Accept(ctx) }
	return append(r.inOrder(r.decide, leftOut), r.inOrder(accept, withoutRecord, withRecord)...)
}

func (r *ruleChange) decide(ctx context.Context, c *sqldb.RuleChange) error {
	return c.Decide(ctx, r.decision())
}

// Classes of databases, in their order. Each command with a rule has this order, so that it can tell
// a database with which an earlier command did nothing from one that took the place of another since.
const (
	withoutRecord = iota
	withRecord
	leftOut
)

// inOrder are steps with each database of some classes.
func (r *ruleChange) inOrder(do func(ctx context.Context, c *sqldb.RuleChange) error, classes ...int) (steps []ruleStep) {
	for _, class := range classes {
		for i := range r.stores {
			steps = append(steps, func(ctx context.Context) error {
				if r.class(i) != class {
					return nil
				}
				return r.on(ctx, i, func(ctx context.Context) error { return do(ctx, r.changes[i]) })
			})
		}
	}
	return steps
}

// class is the place of the database i in the order.
func (r *ruleChange) class(i int) int {
	switch {
	case r.isLeftOut(i):
		return leftOut
	case r.changes[i].HadRecord():
		return withRecord
	}
	return withoutRecord
}

// comesAfter reports whether the database i comes after the database j in the order.
func (r *ruleChange) comesAfter(i, j int) bool {
	return r.class(i) > r.class(j) || r.class(i) == r.class(j) && i > j
}

// decision is that of an earlier command with the same rule, which was interrupted.
func (r *ruleChange) decision() string {
	if last := r.lastDecided(); last >= 0 {
		return r.changes[last].Decision()
	}
	return ""
}

// lastDecided is the last database in the order on which an earlier command with the same rule has
// decided, and has not recorded it there; -1 if there is none.
func (r *ruleChange) lastDecided() int {
	last := -1
	for i, c := range r.begun() {
		if c.Decision() != "" && (last < 0 || r.comesAfter(i, last)) {
			last = i
		}
	}
	return last
}

// on calls f, which works on the database i.
func (r *ruleChange) on(ctx context.Context, i int, f func(ctx context.Context) error) error {
	if err := within(ctx, f); err != nil {
		return fmt.Errorf("store %q: %w", r.name(i), err)
	}
	return nil
}

// to is what the database i gets. Of one that the rule leaves out it has no name.
func (r *ruleChange) to(i int) segment.Binding {
	if !r.isLeftOut(i) {
		return r.o.dbs.router.Binding(i)
	}
	b := r.o.dbs.router.Binding(0)
	b.Store = ""
	return b
}

func (r *ruleChange) begin(ctx context.Context, i int) error {
	unbind := r.stores[i].Unbind
	if r.first {
		unbind = r.stores[i].UnbindFirst
	}
	return r.on(ctx, i, func(ctx context.Context) (err error) {
		r.changes[i], err = unbind(ctx, r.command, r.to(i))
		return err
	})
}

// begun are the changes that were begun, by database.
func (r *ruleChange) begun() iter.Seq2[int, *sqldb.RuleChange] {
	return func(yield func(int, *sqldb.RuleChange) bool) {
		for i, c := range r.changes {
			if c != nil && !yield(i, c) {
				return
			}
		}
	}
}

// undo puts the rules back, because of why. Where the rule is perhaps decided on for good, it stays so
// in all databases that come before: the next command takes them for what this one has left.
func (r *ruleChange) undo(ctx context.Context, why error) error {
	return r.undoIn(ctx, r.undoOrder(), why)
}

func (r *ruleChange) undoIn(ctx context.Context, databases []int, why error) error {
	stays := false
	for _, i := range databases {
		c := r.changes[i]
		if stays && c.HasDecided() {
			continue
		}
		err := r.on(context.WithoutCancel(ctx), i, c.Undo)
		stays = stays || err != nil && (c.HasDecided() || !errors.Is(err, leaf.ErrConflict))
		why = errors.Join(why, err)
	}
	return why
}

// undoOrder are the databases whose change was begun, the last in the order first.
func (r *ruleChange) undoOrder() (order []int) {
	for i := range r.begun() {
		order = append(order, i)
	}
	slices.SortFunc(order, func(i, j int) int {
		if r.comesAfter(i, j) {
			return -1
		}
		return 1
	})
	return order
}

// within calls f, which works on one database.
func within(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, schemaTimeout)
	defer cancel()
	return manage.StoreError(f(ctx))
}

// check refuses, before anything is written, what accept would refuse as well, and a change in
// the database of another cluster or beside nodes that run: by the new rule they would stop.
func (r *ruleChange) check(ctx context.Context) error {
	for i, s := range r.stores {
		if err := within(ctx, s.SameCluster); err != nil && !errors.Is(err, segment.ErrSchema) {
			return fmt.Errorf("store %q: %w", r.name(i), err)
		}
		if err := r.checkStopped(ctx, i); err != nil {
			return err
		}
	}
	return r.checkMoved(ctx)
}

// checkStopped refuses a new rule while a node takes ranges from the database i.
func (r *ruleChange) checkStopped(ctx context.Context, i int) error {
	ctx, cancel := context.WithTimeout(ctx, schemaTimeout)
	defer cancel()
	running, err := r.stores[i].NodesSince(ctx, runningFor)
	switch {
	case isWithoutBoard(err):
		return nil
	case err != nil:
		return manage.StoreError(err)
	case len(running) == 0:
		return nil
	}
	var names []string
	for _, m := range running {
		names = append(names, m.Node)
	}
	slices.Sort(names)
	return fmt.Errorf("%w: nodes take ranges from store %q, perhaps by another rule: %s. Stop all nodes, and Java servers for good, and run the command again; a node that crashed counts for %d minutes",
		leaf.ErrConflict, r.name(i), strings.Join(names, ", "), int(runningFor.Minutes()))
}

// isWithoutBoard reports whether the database has no board, or denies its use. In both
// cases the nodes could not enter or post, either.
func isWithoutBoard(err error) bool {
	return errors.Is(err, segment.ErrSchema) || errors.Is(err, segment.ErrDenied)
}
