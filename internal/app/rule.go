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
	stores  []*sqldb.Store      // those of the new rule, and behind them those that it leaves out
	changes []*sqldb.RuleChange // of each, nil where it was not begun
	ends    []map[string]int64  // by database of the new rule: where numbers of tags without a row there end
}

func (o *offline) newRuleChange(c *RuleChange) (*ruleChange, error) {
	r := &ruleChange{o: o, command: rand.Text(), lost: c.Lost, stores: slices.Clone(o.dbs.stores)}
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
	if err := r.begin(ctx); err != nil {
		return r.undo(ctx, err)
	}
	if err := r.checkNames(); err != nil {
		return r.undo(ctx, err)
	}
	if err := r.checkMoved(ctx); err != nil {
		return r.undo(ctx, err)
	}
	if err := r.keepEnds(ctx); err != nil {
		return r.undo(ctx, err)
	}
	if err := r.decide(ctx); err != nil {
		return r.undo(ctx, err)
	}
	for i, c := range r.begun() {
		err := within(ctx, func(ctx context.Context) error {
			if r.isLeftOut(i) {
				return c.LeaveOut(ctx)
			}
			return c.Accept(ctx, r.o.dbs.router.Binding(i))
		})
		if err != nil {
			return fmt.Errorf("store %q: %w", r.name(i), err)
		}
	}
	return nil
}

// to is what the database i gets, the zero Binding if it is left out.
func (r *ruleChange) to(i int) segment.Binding {
	if r.isLeftOut(i) {
		return segment.Binding{}
	}
	return r.o.dbs.router.Binding(i)
}

func (r *ruleChange) begin(ctx context.Context) error {
	for i, s := range r.stores {
		unbind := s.Unbind
		if r.first {
			unbind = s.UnbindFirst
		}
		err := within(ctx, func(ctx context.Context) (err error) {
			r.changes[i], err = unbind(ctx, r.command, r.to(i))
			return err
		})
		if err != nil {
			return fmt.Errorf("store %q: %w", r.name(i), err)
		}
	}
	return nil
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

func (r *ruleChange) decide(ctx context.Context) error {
	for i, c := range r.begun() {
		if err := within(ctx, c.Decide); err != nil {
			return fmt.Errorf("store %q: %w", r.name(i), err)
		}
	}
	return nil
}

// undo puts the rules back, because of why.
func (r *ruleChange) undo(ctx context.Context, why error) error {
	for i, c := range r.begun() {
		if err := within(context.WithoutCancel(ctx), c.Undo); err != nil {
			why = errors.Join(why, fmt.Errorf("store %q: %w", r.name(i), err))
		}
	}
	return why
}

// checkNames refuses the change if it does not have each database of the rules before. One that
// it does not close serves on for nodes with the old rule, and its rows are not compared.
func (r *ruleChange) checkNames() error {
	for i, c := range r.begun() {
		before := c.Before()
		switch {
		case before == nil || before.Rule == "": // it was the only database, or belonged to no rule
			continue
		case before.Stores == "":
			return fmt.Errorf("%w: store %q does not say which databases its rule has, because a version before recorded it. "+
				"Start one node with that rule, which completes the record, stop it, and run the command again", leaf.ErrConflict, r.name(i))
		}
		for name := range strings.SplitSeq(before.Stores, ",") {
			if err := r.checkName(i, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkName refuses the change if it does not close the database that the rule before of the
// database i calls by a name.
func (r *ruleChange) checkName(i int, name string) error {
	if slices.Contains(r.lost, name) {
		return nil
	}
	of, hint := r.changes[i], ""
	for j, c := range r.begun() {
		switch before := c.Before(); {
		case c == of && before.Store == name, c.WasIn(of.Rule(), name):
			return nil
		case before != nil && before.Store == name:
			hint = fmt.Sprintf(" Store %q is another one: it has the same name by another rule, perhaps of another cluster.", r.name(j))
		}
	}
	return fmt.Errorf("%w: by the rule that store %q has now, tags are also in store %q, which the command does not name: a node with that rule could still issue from it.%s "+
		"Add --leave-out with its URL, or, if no node can ever reach it again, --lost %s", leaf.ErrConflict, r.name(i), name, hint, name)
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
	return fmt.Errorf("%w: nodes take ranges from store %q, perhaps by another rule: %s. Stop all nodes, and run the command again; a node that crashed counts for %d minutes",
		leaf.ErrConflict, r.name(i), strings.Join(names, ", "), int(runningFor.Minutes()))
}

// isWithoutBoard reports whether the database has no board, or denies its use. In both
// cases the nodes could not enter or post, either.
func isWithoutBoard(err error) bool {
	return errors.Is(err, segment.ErrSchema) || errors.Is(err, segment.ErrDenied)
}
