package app

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// division is how the IDs of a tag are divided over rows; the zero division is one row.
type division struct {
	parts int
	block int64
}

func divisionOf(m *segment.Masters) division {
	if m == nil {
		return division{}
	}
	return division{len(m.Stores), m.Block}
}

// checkDivisions refuses a new rule by which a row of a tag would repeat IDs that rows of another division of the tag have
// handed out: the tag was in another number of databases, or in one. Without a row, leaf tag create compares; for a tag
// that is in one database again, or was in one that is lost, the end is kept for it.
func (r *ruleChange) checkDivisions(ctx context.Context, rows []map[string]int64) error {
	ends, err := r.endsByDivision(ctx, rows)
	if err != nil {
		return err
	}
	highest := highestDivided(ends)
	for _, tag := range slices.Sorted(maps.Keys(ends)) {
		m := r.o.dbs.router.Masters(tag)
		if len(r.lost) == 0 || r.showsRows(tag, m, rows) {
			delete(ends[tag], divisionOf(m))
		}
		if leaf.ValidateTag(tag) != nil {
			continue
		}
		end, err := r.endOf(tag, ends[tag], highest)
		if err != nil {
			return err
		}
		if end == 0 {
			continue
		}
		if m == nil {
			err = r.checkUndivided(tag, end, rows)
		} else {
			err = r.checkParts(tag, m, end, rows)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// showsRows reports whether leaf tag create, or a node, finds a row of the tag where the new rule expects it, and each that it finds is
// the one that nodes used last. Beside one, the command takes a missing row for one that may be lost. Where the databases have changed
// places, it finds the others' rows, none there, or one from an earlier time, below IDs that the lost row has handed out.
func (r *ruleChange) showsRows(tag string, m *segment.Masters, rows []map[string]int64) (shows bool) {
	if m == nil {
		return true // one row, which is found or lost
	}
	for i, store := range m.Stores {
		if _, there := rows[store][m.Part(tag, i)]; !there {
			continue
		}
		if !r.keepsPlace(store) {
			return false
		}
		shows = true
	}
	return shows
}

// keepsPlace reports whether the database i had the new rule before, and its place in it. Before its rule is taken away, this is not
// known, and nothing is refused for it.
func (r *ruleChange) keepsPlace(i int) bool {
	c := r.changes[i]
	if c == nil {
		return true
	}
	before := c.Before()
	return before != nil && before.Same(r.to(i))
}

// endOf returns where the IDs of a tag end, by where those of the divisions end of which the new rule shows no row. Where a database
// is lost, what its row of a tag in several databases has handed out is in none of them: only the operator can find that, and not
// below highest, the end of all such tags.
func (r *ruleChange) endOf(tag string, divisions map[division]int64, highest int64) (end int64, err error) {
	m := segment.Masters{}
	for d, high := range divisions {
		end = max(end, high)
		m.Block, m.Stores = max(m.Block, d.block), make([]int, max(len(m.Stores), d.parts))
	}
	switch {
	case len(r.lost) == 0, len(m.Stores) == 0:
		return end, nil
	case r.above == 0:
		return 0, fmt.Errorf("%w: tag %q lived in several databases, and no program knows which IDs it has handed out from one that is lost. "+
			"Add --above NUMBER, which counts for all such tags: the highest ID of them in your own tables, or %d if that is higher, %s", leaf.ErrConflict, tag, highest, m.Generously())
	}
	return max(end, r.above+1), nil
}

// highestDivided returns the end of the IDs of all tags that lived in several databases.
func highestDivided(ends map[string]map[division]int64) (highest int64) {
	for _, divisions := range ends {
		for d := range divisions {
			if d.parts > 0 {
				highest = max(highest, slices.Max(slices.Collect(maps.Values(divisions))))
			}
		}
	}
	return highest
}

// keepEnd tells a database of the rule where the IDs of a tag end: leaf tag create finds that there.
func (r *ruleChange) keepEnd(store int, tag string, end int64) {
	if r.ends[store] == nil {
		r.ends[store] = map[string]int64{}
	}
	r.ends[store][tag] = max(r.ends[store][tag], min(end, segment.MaxMaxID))
}

// endsByDivision returns where the IDs of each tag end, by what rows, boards and the fence of this data directory say of
// each division.
func (r *ruleChange) endsByDivision(ctx context.Context, rows []map[string]int64) (map[string]map[division]int64, error) {
	ends := map[string]map[division]int64{}
	note := func(name string, high int64) {
		tag, end := segment.EndOf(name, high)
		_, m, _, _ := segment.ParsePart(name)
		if ends[tag] == nil {
			ends[tag] = map[division]int64{}
		}
		d := divisionOf(m)
		ends[tag][d] = max(ends[tag][d], end)
	}
	for i := range r.stores {
		for name, maxID := range rows[i] {
			note(name, max(maxID, r.o.mark(name).High))
		}
		notices, answers, err := r.told(ctx, i)
		if err != nil {
			return nil, err
		}
		for _, n := range notices {
			note(n.Tag, max(n.Regress, n.Repaired))
		}
		for _, x := range answers {
			note(x.Tag, x.High)
		}
	}
	return ends, nil
}

func (r *ruleChange) checkUndivided(tag string, end int64, rows []map[string]int64) error {
	to := max(r.o.dbs.router.Route(tag), 0) // a tag without a database: a later rule may have one
	if at, there := rows[to][tag]; there {
		return r.divided(tag, tag, to, at, end, end)
	}
	r.keepEnd(to, tag, end)
	return nil
}

func (r *ruleChange) checkParts(tag string, m *segment.Masters, end int64, rows []map[string]int64) error {
	if r.above > 0 && end == r.above+1 { // which stands nowhere else
		r.keepEnd(m.Stores[0], tag, end)
	}
	for i, store := range m.Stores {
		least, err := m.Start(i, end)
		if err != nil {
			return fmt.Errorf("tag %q has IDs up to %d: %w", tag, end, err)
		}
		part := m.Part(tag, i)
		if at, there := rows[store][part]; there {
			if err := r.divided(tag, part, store, at, least, end); err != nil {
				return err
			}
		}
	}
	return nil
}

// divided returns an error if the row's max_id, at, is below least.
func (r *ruleChange) divided(tag, row string, store int, at, least, end int64) error {
	if at >= least {
		return nil
	}
	return fmt.Errorf("%w: the new rule would repeat IDs of tag %q: rows of an earlier rule have handed out IDs below %d, and its row %q in store %q has max_id=%d. "+
		"Stop all nodes, and Java servers for good, set max_id of that row to %d or more with SQL, and run the command again", leaf.ErrConflict, tag, end, row, r.name(store), at, least)
}
