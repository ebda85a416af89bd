package segment

import (
	"context"
	"slices"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
)

// mayGo returns which of the missing tags, whose rows a reading did not find, are to leave
// the table: as a rule all of them. When more than half of the tags are missing at once,
// that is a mistake more often than a wish: a table that was emptied, a right that was
// lost, an answer that was cut. Then an alarm is raised, and tags with IDs in memory stay
// until these are used up or the rows are back: the ranges are this node's own, whatever
// became of the rows. The alarm ends when no such tag is left and the list has rows. Tags in
// deleted do not count: leaf tag delete has deleted their rows.
//
// known is how many tags the store had, found how many rows the reading did find. a.mu is
// held.
func (s *shard) mayGo(missing []*Tag, known, found int, deleted map[string]bool) (drop []*Tag) {
	a := s.alloc
	missing = slices.DeleteFunc(missing, func(t *Tag) bool {
		if deleted[t.name] {
			drop, known = append(drop, t), known-1
		}
		return deleted[t.name]
	})
	begins := !s.vanished && 2*len(missing) > known
	if !s.vanished && !begins {
		return append(drop, missing...)
	}
	if begins {
		a.counters.vanished.Add(1)
	}
	kept := 0
	for _, t := range missing {
		t.mu.Lock()
		stays := t.stockLocked() > 0 || t.buffer().loading()
		t.mu.Unlock()
		if stays {
			kept++
		} else {
			drop = append(drop, t)
		}
	}
	s.vanished = begins || kept > 0 || found == 0
	switch {
	case !s.vanished:
		a.alarms.Clear(leaf.AlarmVanished, s.name)
	case len(missing) > 0:
		a.alarms.Raise(vanishedAlarm(s.name, len(missing), known, kept))
	}
	return drop
}

// deletedByCommand returns tags whose rows a reading did not find because leaf tag delete has
// deleted them: the command leaves on the board where the numbers of the row ended. It asks only
// when more than half of the tags are missing, and no further than the first one that the
// command has not deleted.
func (s *shard) deletedByCommand(rows []Row) map[string]bool {
	a, board := s.alloc, s.watcher.board
	listed := make(map[string]bool, len(rows))
	for _, row := range rows {
		listed[row.Tag] = true
	}
	var missing []string
	known := 0
	for name, t := range *a.table.Load() {
		if t.shard != s {
			continue
		}
		if known++; !listed[name] {
			missing = append(missing, name)
		}
	}
	if board == nil || 2*len(missing) <= known {
		return nil
	}
	slices.Sort(missing)
	deleted := map[string]bool{}
	for _, tag := range missing {
		answers, err := bounded.Do(a.running, &s.calls, a.cfg.LoadTimeout, func(ctx context.Context) ([]Answer, error) { return board.Answers(ctx, tag) })
		high := a.fence.Mark(tag).High // the end of an earlier row of this name lies below
		if err != nil || !slices.ContainsFunc(answers, func(x Answer) bool { return x.Node == DeletedRow && x.High >= high }) {
			break
		}
		deleted[tag] = true
	}
	return deleted
}
