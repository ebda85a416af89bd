package sim

import (
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/sim/world"
	numbers "github.com/leaf-idgen/leaf/number"
	"github.com/leaf-idgen/leaf/segment"
)

// The bounds of rule Y that docs/RULES.md gives.
const (
	longestAhead = time.Minute // of a clock that moves a row, compared with the database's
	longestEarly = time.Hour   // by its own clock, of a node that takes a range of what the row has
	heedsRow     = time.Second // until a node heeds a row that it has read
)

// periods checks tags whose numbers begin anew. Such a run begins within the last hour of a year, so a day, a
// month and a year end in it, at a random moment.
type periods struct {
	mode  *segmentMode
	start time.Time // the true time at which the run began, which is the databases' clock, too

	reached map[string]int64 // the latest period of each tag that its row came to because the numbers before were used up
	spent   map[string]bool  // tags that an operator has taken to the end of their period
}

func newPeriods(m *segmentMode, start time.Time) *periods {
	p := &periods{m, start, map[string]int64{}, map[string]bool{}}
	for _, d := range m.dbs {
		d.Reserved = p.reserved
	}
	return p
}

// reserved is told each range that a database has reserved.
func (p *periods) reserved(tag string, r leaf.Range) {
	if day := r.Hi >> numbers.PeriodBits; day > r.Lo>>numbers.PeriodBits {
		p.reached[tag] = max(p.reached[tag], day)
	}
}

// spend notes that an operator takes a tag to the last number of a period.
func (p *periods) spend(t *tag, last int64) {
	p.spent[t.name] = true
	p.reached[t.name] = max(p.reached[t.name], last>>numbers.PeriodBits+1)
}

// excuses reports whether a node need not serve a tag in the calm: its next period has not begun. A nil p excuses none.
func (p *periods) excuses(t *tag) bool {
	return p != nil && p.spent[t.name] && p.reached[t.name] > t.begin(p.now())
}

// newYear returns the true time at which a run begins in which a year ends.
func newYear(w *World) time.Time {
	return time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC).Add(-w.upTo(Storm + Calm/2))
}

// unit draws the period of the next tag.
func (p *periods) unit() string {
	return pick(p.mode.w.rng, numbers.Day, numbers.Month, numbers.Year)
}

// begin returns the day on which the period begins that a moment lies in.
func (t *tag) begin(at time.Time) int64 {
	year, month, day := at.UTC().Date()
	switch t.period {
	case numbers.Year:
		month, day = 1, 1
	case numbers.Month:
		day = 1
	}
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix() / 86400
}

// now returns the true time.
func (p *periods) now() time.Time { return p.start.Add(p.mode.w.sched.Elapsed()) }

// period is what a process has read of a tag's row: the latest period, and when by segmentEngine.now.
type period struct {
	day int64
	at  time.Duration
}

// read takes note of a row that a store has given to the process.
func (e *segmentEngine) read(row segment.Row) {
	if day := row.MaxID >> numbers.PeriodBits; day > e.told[row.Tag].day {
		e.told[row.Tag] = period{day, e.now()}
	}
}

// near takes note of the latest period that begins in longestEarly by the node's clock: the process may take ranges of it now,
// and issue them later, also after its clock was set back.
func (e *segmentEngine) near(name string) {
	if t := e.mode.tag(name); t != nil && t.period != "" {
		e.mayTake[name] = max(e.mayTake[name], t.begin(e.node.Machine.Wall().Add(longestEarly)))
	}
}

// moment is what a node knew when a call began.
type moment struct {
	wall  time.Time
	steps int   // of its clock, until then
	told  int64 // the period in which it has read that the row is
}

func (e *segmentEngine) moment(tag string) moment {
	e.near(tag)
	m := moment{wall: e.node.Machine.Wall(), steps: e.node.Machine.Steps()}
	if told := e.told[tag]; told.day > 0 && e.now() >= told.at+heedsRow {
		m.told = told.day
	}
	return m
}

// check takes what a call of a tag got.
func (p *periods) check(e *segmentEngine, name string, got []leaf.Range, before moment) {
	w, t := p.mode.w, p.mode.tag(name)
	if t == nil || t.period == "" {
		return
	}
	e.near(name)
	true0 := p.now()
	stepped := e.node.Machine.Steps() != before.steps
	for _, r := range got {
		day := r.Lo >> numbers.PeriodBits
		switch {
		case (r.Hi-1)>>numbers.PeriodBits != day:
			w.Failf("%s: a call got %v of %q, which is of two periods", e.node.Name, r, name)
		case !stepped && day < t.begin(before.wall):
			w.Failf("%s: a call got %v of %q, whose period had ended by the node's clock before the call began, at %v", e.node.Name, r, name, before.wall)
		case day < before.told:
			w.Failf("%s: a call got %v of %q, and the node had read before it began that the row is in a later period", e.node.Name, r, name)
		case !stepped && day > e.mayTake[name]:
			w.Failf("%s: a call got %v of %q, whose period has always begun later than in %v by the node's clock", e.node.Name, r, name, longestEarly)
		case day > t.begin(true0.Add(longestAhead)) && day > p.reached[name]:
			w.Failf("%s: a call got %v of %q, whose period begins later than in %v by the database's clock", e.node.Name, r, name, longestAhead)
		}
	}
	if first := got[0].Lo >> numbers.PeriodBits; first < t.begin(true0) {
		w.faults.Hit(PeriodLate)
	}
}

// The kinds of what comes of clocks that are off at the end of a period.
const (
	PeriodLate world.Kind = "number of a period issued after its end, by a clock that is behind"
)

// options are the tag's.
func (t *tag) options() (o segment.Options) {
	if t.strict {
		o.Order, o.FixedStep = segment.OrderStrict, strings.Contains(t.name, "/seq/")
	}
	o.Period = t.period
	return o
}
