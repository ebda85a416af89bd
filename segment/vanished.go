package segment

import "github.com/leaf-idgen/leaf"

// mayGo returns which of the missing tags, whose rows a reading did not find, are to leave
// the table: as a rule all of them. When more than half of the tags are missing at once,
// that is a mistake more often than a wish: a table that was emptied, a right that was
// lost, an answer that was cut. Then an alarm is raised, and tags with IDs in memory stay
// until these are used up or the rows are back: the ranges are this node's own, whatever
// became of the rows. The alarm ends when no such tag is left and the list has rows.
//
// known is how many tags the store had, found how many rows the reading did find. a.mu is
// held.
func (s *shard) mayGo(missing []*Tag, known, found int) (drop []*Tag) {
	a := s.alloc
	begins := !s.vanished && 2*len(missing) > known
	if !s.vanished && !begins {
		return missing
	}
	if begins {
		a.counters.vanished.Add(1)
	}
	for _, t := range missing {
		t.mu.Lock()
		stays := t.stockLocked() > 0 || t.buffer().loading()
		t.mu.Unlock()
		if !stays {
			drop = append(drop, t)
		}
	}
	kept := len(missing) - len(drop)
	s.vanished = begins || kept > 0 || found == 0
	switch {
	case !s.vanished:
		a.alarms.Clear(leaf.AlarmVanished, s.name)
	case len(missing) > 0:
		a.alarms.Raise(vanishedAlarm(s.name, len(missing), known, kept))
	}
	return drop
}
