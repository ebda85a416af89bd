package segment

import (
	"github.com/leaf-idgen/leaf"
)

// reportLoads takes the queue's word on whether, and why, loads find the store unusable.
// Loads tell, not reads: a database that may be read but not written serves nothing.
func (s *shard) reportLoads(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starving = why
	s.alarmLocked()
}

// block notes whether, and why, the node itself allows no load.
func (s *shard) block(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocked = why
}

// askAnother finds out whether it is the store or the tag that makes the loads of one
// tag fail, or be late: it loads a range of another tag. While one has stock the node can serve, and
// no load is wasted. Without another tag it is the store.
func (s *shard) askAnother(failed *Tag, why error) {
	var other *Tag
	for _, t := range *s.alloc.table.Load() {
		if t.shard != s || t == failed {
			continue
		}
		t.mu.Lock()
		stock := t.stockLocked()
		late := t.buf != nil && t.buf.late()
		t.mu.Unlock()
		if stock > 0 {
			return
		}
		if !late && (other == nil || t.name < other.name) && !s.alloc.fence.Mark(t.name).Latched {
			other = t
		}
	}
	if other == nil {
		s.queue.condemn(failed, why)
		return
	}
	s.queue.probes(other)
	other.mu.Lock()
	defer other.mu.Unlock()
	if other.state == listed {
		other.ask(other.buffer(), true)
	}
}

// alarmLocked brings the alarm in line with what is known. s.mu is held, so that
// its beginning and end are told in the order in which they happened.
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
