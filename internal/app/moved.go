package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
)

// runningFor is how long after its last entry on the list of a database a node counts as
// running. A node enters once a minute, and takes no range by a rule that it has not compared
// for three minutes.
const runningFor = 5 * time.Minute

// acceptRule records the configured rule. While it checks that the rule repeats no number, no
// node can start, by whatever rule. After a refusal each database has the rule that it had.
func (o *offline) acceptRule(ctx context.Context) (err error) {
	changes := make([]*sqldb.RuleChange, len(o.dbs.stores))
	undo := func() {
		for i, c := range changes {
			if c == nil {
				continue
			}
			if failed := within(context.WithoutCancel(ctx), c.Undo); failed != nil {
				err = errors.Join(err, fmt.Errorf("store %q: %w", o.dbs.name(i), failed))
			}
		}
	}
	for i, s := range o.dbs.stores {
		if err = within(ctx, func(ctx context.Context) (err error) {
			changes[i], err = s.Unbind(ctx)
			return err
		}); err != nil {
			undo()
			return err
		}
	}
	if err = o.checkRule(ctx); err != nil {
		undo()
		return err
	}
	for i, c := range changes {
		if err := within(ctx, func(ctx context.Context) error { return c.Accept(ctx, o.dbs.router.Binding(i)) }); err != nil {
			return fmt.Errorf("store %q: %w", o.dbs.name(i), err)
		}
	}
	return nil
}

// within calls f, which works on one database.
func within(ctx context.Context, f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, schemaTimeout)
	defer cancel()
	return manage.StoreError(f(ctx))
}

// checkRule refuses a new rule in the database of another cluster, and while it could repeat
// numbers: while a node still runs, or while checkMoved refuses it.
func (o *offline) checkRule(ctx context.Context) error {
	for i, s := range o.dbs.stores {
		if err := within(ctx, s.SameCluster); err != nil && !errors.Is(err, segment.ErrSchema) {
			return fmt.Errorf("store %q: %w", o.dbs.name(i), err)
		}
		if err := o.checkStopped(ctx, i); err != nil {
			return err
		}
	}
	return o.checkMoved(ctx)
}

// checkMoved refuses a new rule that sends a tag to a row below a number that is in use from
// another database or by this data directory. A tag without a row there is guarded by leaf tag
// create.
func (o *offline) checkMoved(ctx context.Context) error {
	rows := make([]map[string]int64, len(o.dbs.stores)) // max_id by tag
	for i := range o.dbs.stores {
		all, err := o.dbs.rows(ctx, i)
		if err != nil && !errors.Is(err, segment.ErrSchema) { // without a table there are no rows
			return err
		}
		rows[i] = map[string]int64{}
		for _, row := range all {
			if err := o.dbs.readable(i, row); err != nil {
				return err
			}
			rows[i][row.Tag] = row.MaxID
		}
	}
	for i := range o.dbs.stores {
		if err := o.checkOldStore(ctx, i, rows); err != nil {
			return err
		}
	}
	return o.checkOwnFence(rows)
}

// checkStopped refuses a new rule while a node takes ranges from the database i.
func (o *offline) checkStopped(ctx context.Context, i int) error {
	ctx, cancel := context.WithTimeout(ctx, schemaTimeout)
	defer cancel()
	running, err := o.dbs.stores[i].NodesSince(ctx, runningFor)
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
		leaf.ErrConflict, o.dbs.name(i), strings.Join(names, ", "), int(runningFor.Minutes()))
}

// isWithoutBoard reports whether the database has no board, or denies its use. In both
// cases the nodes could not enter or post, either.
func isWithoutBoard(err error) bool {
	return errors.Is(err, segment.ErrSchema) || errors.Is(err, segment.ErrDenied)
}

// checkOldStore compares what the database i knows of tags with their rows in the databases
// where the rule expects them.
func (o *offline) checkOldStore(ctx context.Context, i int, rows []map[string]int64) error {
	ctx, cancel := context.WithTimeout(ctx, schemaTimeout)
	defer cancel()
	s := o.dbs.stores[i]
	notices, err := s.Notices(ctx)
	if err != nil && !isWithoutBoard(err) {
		return manage.StoreError(err)
	}
	answers, err := s.AllAnswers(ctx)
	if err != nil && !isWithoutBoard(err) {
		return manage.StoreError(err)
	}
	// The notices come first: after a loss of commits the row says too little.
	for _, n := range notices {
		known := max(n.Regress, n.Repaired)
		if err := o.compare(i, n.Tag, known, fmt.Sprintf("nodes have posted that numbers up to %d are in use in store %q, after a loss of commits", known, o.dbs.name(i)), rows); err != nil {
			return err
		}
	}
	if err := o.checkOldRows(i, rows); err != nil {
		return err
	}
	for _, x := range answers {
		why := fmt.Sprintf("node %s has told store %q of numbers up to %d", x.Node, o.dbs.name(i), x.High)
		if x.Node == segment.DeletedRow {
			why = fmt.Sprintf("a row that was deleted in store %q had max_id=%d", o.dbs.name(i), x.High)
		}
		if err := o.compare(i, x.Tag, x.High, why, rows); err != nil {
			return err
		}
	}
	return nil
}

// checkOldRows is checkOldStore for the rows.
func (o *offline) checkOldRows(i int, rows []map[string]int64) error {
	for _, tag := range slices.Sorted(maps.Keys(rows[i])) {
		why := fmt.Sprintf("its row in store %q has max_id=%d: nodes took ranges there after the row was moved", o.dbs.name(i), rows[i][tag])
		if err := o.compare(i, tag, rows[i][tag], why, rows); err != nil {
			return err
		}
	}
	return nil
}

// checkOwnFence compares the fence of the data directory with the rows: a row that was
// deleted with SQL while no node ran has left nothing in its database.
func (o *offline) checkOwnFence(rows []map[string]int64) error {
	for to := range rows {
		for _, tag := range slices.Sorted(maps.Keys(rows[to])) {
			high := o.mark(tag).High
			if err := o.compare(-1, tag, high, fmt.Sprintf("the node of data directory %s holds numbers up to %d", o.cfg.DataDir, high), rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare refuses a row below known where the rule expects the tag. from is the database
// that known is from, -1 if it is from none.
func (o *offline) compare(from int, tag string, known int64, why string, rows []map[string]int64) error {
	to := o.dbs.router.Route(tag)
	if to < 0 || to == from {
		return nil
	}
	at, moved := rows[to][tag]
	switch {
	case !moved || known <= 0 || at >= known:
		return nil
	case known > segment.MaxMaxID:
		return fmt.Errorf("%w: tag %q: %s, must be 0 to %d; no node wrote that: correct it", leaf.ErrConflict, tag, why, int64(segment.MaxMaxID))
	}
	return fmt.Errorf("%w: the new rule would repeat numbers of tag %q: its row in store %q, where the rule expects it, has max_id=%d, but %s. "+
		"Stop all nodes, set max_id in store %q to %d or more with SQL, and run the command again", leaf.ErrConflict, tag, o.dbs.name(to), at, why, o.dbs.name(to), known)
}

// rows returns the rows of the database i.
func (d *databases) rows(ctx context.Context, i int) ([]segment.Row, error) {
	ctx, cancel := context.WithTimeout(ctx, schemaTimeout)
	defer cancel()
	all, err := d.stores[i].Rows(ctx)
	return all, manage.StoreError(err)
}

// readable is leaf.ErrConflict for a row of a tag that cannot be read: where its numbers end is
// not known. A row whose name is no tag's issues nothing.
func (d *databases) readable(i int, row segment.Row) error {
	isTag := leaf.ValidateTag(row.Tag) == nil
	if row.Problem == nil || !isTag {
		return nil
	}
	return fmt.Errorf("%w: the row of tag %q in store %q cannot be read, so it is not known where its numbers end: %w. "+
		"Correct it with SQL, with a max_id that is not below any number of the tag in your own tables, and run the command again",
		leaf.ErrConflict, row.Tag, d.name(i), row.Problem)
}
