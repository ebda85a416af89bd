package segment

import (
	"context"
	"errors"

	"github.com/leaf-idgen/leaf"
)

// reportLoads notes what the load queue reports: why loads find the store unusable, nil if they
// do not. Reads report nothing here: a database that can be read but not written gives no IDs.
func (s *shard) reportLoads(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starving = why
	s.alarmLocked()
}

// block notes why the node itself allows no load, nil if it does.
func (s *shard) block(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocked = why
}

// askAnother finds out why the loads of one tag fail or are late, because of the store or of the
// tag: it loads a range of another tag. While another tag has stock, it loads nothing: the node
// serves, and the load would be wasted. If there is no other tag to ask, the store is to blame.
//
// A tag that this node may not issue now, such as one that another node owns, cannot be asked: its load
// takes no range. Where all others are like this, a late load does not count against the store: perhaps a
// transaction has locked the row.
func (s *shard) askAnother(failed *Tag, why error) {
	var other *Tag
	barred := false
	for _, t := range *s.alloc.table.Load() {
		if t.shard != s || t == failed {
			continue
		}
		t.mu.Lock()
		stock := t.stockLocked()
		late := t.buf != nil && t.buf.late()
		_, err := t.mayLocked()
		t.mu.Unlock()
		switch {
		case err != nil:
			barred = true
		case stock > 0:
			return
		case !late && (other == nil || t.name < other.name) && !s.alloc.fence.Mark(t.name).Latched:
			other = t
		}
	}
	switch {
	case other != nil:
		s.queue.probes(other)
		other.mu.Lock()
		defer other.mu.Unlock()
		if other.state == listed {
			other.ask(other.buffer(), true)
		}
	case !barred || !errors.Is(why, context.DeadlineExceeded):
		s.queue.condemn(failed, why)
	}
}

// alarmLocked raises or ends the alarm by what is known. s.mu is held, so that the beginning
// and the end of the alarm are reported in the order in which they happened.
func (s *shard) alarmLocked() {
	a := s.alloc
	switch {
	case a.isClosing():
		return
	case s.foreign != nil:
		a.alarms.Raise(ruleAlarm(s.name, s.foreign))
	default:
		a.alarms.Clear(leaf.AlarmRule, s.name)
	}
	switch {
	case s.foreign != nil:
		a.alarms.Clear(leaf.AlarmStore, s.name)
	case s.last != nil && s.bound && s.starving == nil:
		a.alarms.Raise(listAlarm(s.name, s.last))
	case s.last != nil:
		a.alarms.Raise(storeAlarm(s.name, s.last))
	case s.starving != nil:
		a.alarms.Raise(loadsAlarm(s.name, s.starving))
	default:
		a.alarms.Clear(leaf.AlarmStore, s.name)
	}
}
