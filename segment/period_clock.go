package segment

import (
	"fmt"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf"
)

// A node whose clock does not fit the period of a row issues none of its numbers. Nor does it take ranges of the row, because
// it would drop each of them: a node that tried again every second would use up the numbers of a day in minutes, for the nodes
// whose clocks are right, too.

// early is a period that the node wanted to begin before the database's clock was there.
type early struct {
	day   int64
	until time.Time // when the database's clock is there
	why   error
}

// earlyError says that the node's clock is too far ahead to begin a period. The database is not to blame.
type earlyError struct{ error }

func (e *earlyError) Unwrap() error { return e.error }

// tooEarly notes that the node must not begin the period from day yet: its clock says now, and the database's is behind by
// ahead. The node tries again when the database's clock is in the period, and not sooner than in longestAhead.
func (t *Tag) tooEarly(of *period, day int64, now time.Time, ahead time.Duration) error {
	err := &earlyError{fmt.Errorf("%w: tag %q is not moved to the period from %s: the clock of the node that issues the tag is %v ahead of the database's, and at most %v is allowed",
		leaf.ErrNotReady, t.name, dateOf(day), ahead.Round(time.Second), longestAhead)}
	wait := max(of.start(day).Sub(now.Add(-ahead)), longestAhead)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.early = early{day, now.Add(wait), err}
	return err
}

// misfitLocked returns why the node's clock, which says now, does not fit the period of the row, nil if it does, and begins or
// ends the alarm. t.mu is held.
func (t *Tag) misfitLocked(of *period, now time.Time) (err error) {
	switch begin := of.begin(now); {
	case t.known.seen > of.begin(now.Add(longestEarly)):
		err = fmt.Errorf("%w: the row of tag %q is in the period from %s, which begins later than in %v by the clock of the node that issues the tag: compare the clocks, "+
			"or the numbers of the period are used up", leaf.ErrNotReady, t.name, dateOf(t.known.seen), longestEarly)
	case t.known.seen >= t.early.day, begin < t.early.day: // the row is there, or the clock is no longer
		t.early = early{}
	case now.Before(t.early.until):
		err = t.early.why
	}
	t.misfitIsLocked(err)
	return err
}

// misfitIsLocked notes why the node's clock does not fit the tag, nil if it does. t.mu is held.
func (t *Tag) misfitIsLocked(why error) {
	text := ""
	if why != nil {
		text = why.Error()
	}
	if text != t.misfit {
		t.misfit = text
		t.alloc.misfits.set(t.name, why, t.alloc.alarms)
	}
}

// misfits are the tags whose rows the node's clock does not fit, and why. One alarm stands for all of them, because one clock
// is wrong.
type misfits struct {
	mu   sync.Mutex // the last of all locks but those of alarms
	tags map[string]error
	told string // the tag that the alarm names
}

// periodsSubject is the subject of the alarm.
const periodsSubject = "periods"

func (m *misfits) set(tag string, why error, alarms leaf.Alarms) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if why == nil {
		delete(m.tags, tag)
	} else {
		m.tags[tag] = why
	}
	if m.told != tag && m.tags[m.told] != nil {
		return
	}
	if why != nil {
		m.told = tag
		alarms.Raise(misfitAlarm(tag, why))
		return
	}
	for m.told, why = range m.tags {
		alarms.Raise(misfitAlarm(m.told, why))
		return
	}
	m.told = ""
	alarms.Clear(leaf.AlarmClock, periodsSubject)
}

// ClockMisfits reports whether there is a tag whose numbers begin anew, of which this node issues none because of its clock.
// Then other nodes issue the tags in strict order better.
func (a *Allocator) ClockMisfits() bool {
	a.misfits.mu.Lock()
	defer a.misfits.mu.Unlock()
	return len(a.misfits.tags) > 0
}
