package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
)

// checkMoved refuses a new rule that sends a tag to a row below a number that is in use from
// another database or by this data directory. A tag without a row there is guarded by leaf tag
// create, which asks all databases of the rule; what those know that the rule leaves out is kept.
func (r *ruleChange) checkMoved(ctx context.Context) error {
	r.ends = make([]map[string]int64, len(r.o.dbs.stores))
	rows := make([]map[string]int64, len(r.stores)) // max_id by tag
	for i := range r.stores {
		all, err := r.allRows(ctx, i)
		if err != nil && !errors.Is(err, segment.ErrSchema) { // without a table there are no rows
			return err
		}
		rows[i] = map[string]int64{}
		for _, row := range all {
			if err := manage.Readable(r.name(i), row); err != nil {
				return err
			}
			rows[i][row.Tag] = row.MaxID
		}
	}
	for i := range r.stores {
		if err := r.checkOldStore(ctx, i, rows); err != nil {
			return err
		}
	}
	if err := r.checkOwnFence(rows); err != nil {
		return err
	}
	return r.checkDivisions(ctx, rows)
}

// checkOldStore compares what the database i knows of tags with their rows in the databases
// where the rule expects them.
func (r *ruleChange) checkOldStore(ctx context.Context, i int, rows []map[string]int64) error {
	notices, answers, err := r.told(ctx, i)
	if err != nil {
		return err
	}
	// The notices come first: after a loss of commits the row says too little.
	for _, n := range notices {
		known := max(n.Regress, n.Repaired)
		if err := r.compare(i, n.Tag, known, fmt.Sprintf("nodes have posted that numbers up to %d are in use in store %q, after a loss of commits", known, r.name(i)), rows); err != nil {
			return err
		}
	}
	if err := r.checkOldRows(i, rows); err != nil {
		return err
	}
	for _, x := range answers {
		why := fmt.Sprintf("node %s has told store %q of numbers up to %d", x.Node, r.name(i), x.High)
		if x.Node == segment.DeletedRow {
			why = fmt.Sprintf("a row that was deleted in store %q had max_id=%d", r.name(i), x.High)
		}
		if err := r.compare(i, x.Tag, x.High, why, rows); err != nil {
			return err
		}
	}
	return nil
}

// checkOldRows is checkOldStore for the rows.
func (r *ruleChange) checkOldRows(i int, rows []map[string]int64) error {
	for _, tag := range slices.Sorted(maps.Keys(rows[i])) {
		why := fmt.Sprintf("its row in store %q has max_id=%d: nodes took ranges there after the row was moved", r.name(i), rows[i][tag])
		if err := r.compare(i, tag, rows[i][tag], why, rows); err != nil {
			return err
		}
	}
	return nil
}

// checkOwnFence compares the fence of the data directory with the rows: a row that was
// deleted with SQL while no node ran has left nothing in its database.
func (r *ruleChange) checkOwnFence(rows []map[string]int64) error {
	for to := range rows {
		for _, tag := range slices.Sorted(maps.Keys(rows[to])) {
			high := r.o.mark(tag).High
			if err := r.compare(-1, tag, high, fmt.Sprintf("the node of data directory %s holds numbers up to %d", r.o.cfg.DataDir, high), rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// compare returns an error if the tag's row, in the database where the rule expects it, is below
// known. from is the database in which known was read, -1 if it was not read in one.
func (r *ruleChange) compare(from int, tag string, known int64, why string, rows []map[string]int64) error {
	to := r.o.dbs.router.Route(tag)
	if to == from || to < 0 && !r.isLeftOut(from) {
		return nil
	}
	to = max(to, 0) // a tag without a database: a later rule may have one
	at, moved := rows[to][tag]
	isTag := leaf.ValidateTag(tag) == nil
	switch {
	case known <= 0 || at >= known:
		return nil
	case !moved && (!r.isLeftOut(from) || !isTag):
		return nil
	case !moved && known <= segment.MaxMaxID:
		r.keepEnd(to, tag, known)
		return nil
	case known > segment.MaxMaxID:
		return fmt.Errorf("%w: tag %q: %s, must be 0 to %d; no node wrote that: correct it", leaf.ErrConflict, tag, why, int64(segment.MaxMaxID))
	}
	return fmt.Errorf("%w: the new rule would repeat numbers of tag %q: its row in store %q, where the rule expects it, has max_id=%d, but %s. "+
		"Stop all nodes, and Java servers for good, set max_id in store %q to %d or more with SQL, and run the command again", leaf.ErrConflict, tag, r.name(to), at, why, r.name(to), known)
}

// keepEnds tells the databases of the rule where the numbers of tags end whose rows stay behind in
// a database that the rule leaves out: leaf tag create does not ask that one.
func (r *ruleChange) keepEnds(ctx context.Context) error {
	for i, ends := range r.ends {
		if err := within(ctx, func(ctx context.Context) error { return r.stores[i].KeepEnds(ctx, ends) }); err != nil {
			return fmt.Errorf("store %q: %w", r.name(i), err)
		}
	}
	return nil
}

// allRows returns the rows of the database i, as they are for good once its rule is taken away.
func (r *ruleChange) allRows(ctx context.Context, i int) ([]segment.Row, error) {
	if c := r.changes[i]; c != nil {
		return c.Rows(), nil
	}
	return allRows(ctx, r.stores[i])
}

// told returns what nodes have told the database i. Before its rule is taken away, what cannot be
// read is left for later.
func (r *ruleChange) told(ctx context.Context, i int) (notices []segment.Notice, answers []segment.Answer, err error) {
	if c := r.changes[i]; c != nil {
		notices, answers = c.Told()
		return notices, answers, nil
	}
	err = within(ctx, func(ctx context.Context) (err error) {
		if notices, err = r.stores[i].Notices(ctx); err == nil || isWithoutBoard(err) {
			answers, err = r.stores[i].AllAnswers(ctx)
		}
		if isWithoutBoard(err) {
			return nil
		}
		return err
	})
	return notices, answers, err
}

// allRows returns the rows of a database.
func allRows(ctx context.Context, s segment.Store) ([]segment.Row, error) {
	ctx, cancel := context.WithTimeout(ctx, schemaTimeout)
	defer cancel()
	all, err := s.Rows(ctx)
	return all, manage.StoreError(err)
}
