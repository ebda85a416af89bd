package segment

import (
	"context"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
	"github.com/leaf-idgen/leaf/number"
)

// How numbers begin anew in each period. No number is used twice: an ID is the day on which its period begins, in days
// since 1970-01-01, and below that number.PeriodBits bits that count from 1 in each period. When the first node's clock
// is in a new period, it raises the row to the first number of that period; the row never goes back. What is left of the
// period before is dropped, never issued late. The row decides: a node whose clock is behind takes what the row says.

const (
	// longestAhead is how far a node's clock may be ahead of the database's when the node moves a row to a new period.
	// The row can never be moved back.
	longestAhead = time.Minute
	// longestEarly is how long before a period begins by a node's clock the node issues numbers of it, because the row
	// has them.
	longestEarly = time.Hour
)

// period is a length of time in a zone. In force it is one pointer as long as the options do not change.
type period struct {
	unit string // number.Day, number.Month or number.Year
	zone *time.Location
}

// period returns the period of o, nil if it has none. Error: leaf.ErrBadRequest.
func (o Options) period() (*period, error) {
	switch o.Period {
	case "", PeriodNone:
		if o.PeriodZone != "" && o.PeriodZone != zoneUTC {
			return nil, leaf.BadField("period_zone", o.PeriodZone, "needs a period")
		}
		return nil, nil //nolint:nilnil // as most tags
	case number.Day, number.Month, number.Year:
	default:
		return nil, leaf.BadField("period", o.Period, "must be none, day, month or year")
	}
	zone, err := time.LoadLocation(o.PeriodZone)
	if err != nil || o.PeriodZone == "Local" {
		return nil, leaf.BadField("period_zone", o.PeriodZone, "must be a name of the IANA time zone database, such as Europe/Berlin")
	}
	return &period{o.Period, zone}, nil
}

// begin returns the first day of the period that a moment lies in, in days since 1970-01-01.
func (p *period) begin(at time.Time) int64 {
	year, month, day := at.In(p.zone).Date()
	switch p.unit {
	case number.Year:
		month, day = 1, 1
	case number.Month:
		day = 1
	}
	return max(0, time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Unix()/86400)
}

// beyondPeriod reports whether a number lies in a later period than the one that a moment lies in or that begins soon after
// it, and returns the first number of such periods.
func (o Options) beyondPeriod(n int64, at time.Time) (first int64, beyond bool) {
	p, err := o.period()
	if err != nil || p == nil {
		return 0, false
	}
	latest := p.begin(at.Add(longestEarly))
	return (latest + 1) << number.PeriodBits, periodOf(n) > latest
}

// nextPeriod returns the first number of the periods after the one that a moment lies in, or after that of n, if it is later. o
// has a period.
func (o Options) nextPeriod(n int64, at time.Time) int64 {
	p, _ := o.period()
	return (max(p.begin(at), periodOf(n)) + 1) << number.PeriodBits
}

// beforePeriod reports whether a number that an operator gives lies in an earlier period than the one that a moment lies in,
// and returns the first number of that one, and why the number is refused: when a node of which no program knows has begun the
// period, another one would begin it again.
func (o Options) beforePeriod(n int64, at time.Time) (first int64, why string, before bool) {
	p, err := o.period()
	if err != nil || p == nil {
		return 0, "", false
	}
	day := p.begin(at)
	first = day<<number.PeriodBits + 1
	why = fmt.Sprintf("is a number of the period from %s, and by the clock of this node, which must be right, the period from %s has begun: a node that is gone may have issued numbers of it that no table has yet. "+
		"Take its first number, %d, for the highest one and give %s", dateOf(periodOf(n)), dateOf(day), first, generously)
	return first, why, n < first
}

// start returns when the period that begins on a day begins in its zone.
func (p *period) start(day int64) time.Time {
	year, month, date := time.Unix(day*86400, 0).UTC().Date()
	return time.Date(year, month, date, 0, 0, 0, 0, p.zone)
}

// periodOf returns the period of an ID.
func periodOf(id int64) int64 { return id >> number.PeriodBits }

func dateOf(day int64) string { return time.Unix(day*86400, 0).UTC().Format(time.DateOnly) }

// periodTerm is the Term of ranges of one period: until the node's clock is in a later one.
type periodTerm struct {
	of    *period
	day   int64 // the first of the period
	alloc *Allocator
	outer Term // of strict order, nil in plain order
}

// Valid implements Term.
func (p periodTerm) Valid() bool {
	return p.of.begin(p.alloc.rt.Now()) <= p.day && (p.outer == nil || p.outer.Valid())
}

// lossOf is the reason why what was reserved in a term is dropped.
func lossOf(term Term) lossReason {
	if _, ok := term.(periodTerm); ok {
		return lossPeriod
	}
	return lossOrder
}

// periodLocked puts the period around a term of strict order: that of the node's clock, or a later one that the row has
// been seen in. t.mu is held.
func (t *Tag) periodLocked(outer Term) (Term, error) {
	o := t.options
	if o.period == nil {
		_, err := o.Options.period()
		return nil, fmt.Errorf("%w: the period of tag %q cannot be used: %w", leaf.ErrNotReady, t.name, err)
	}
	now := t.alloc.rt.Now()
	if err := t.misfitLocked(o.period, now); err != nil {
		return nil, err
	}
	return periodTerm{o.period, max(o.period.begin(now), t.known.seen), t.alloc, outer}, nil
}

// sawLocked takes note of the options' period and of the number that the row has reached. What is in memory of an earlier
// period, or of another option, is dropped. t.mu is held.
func (t *Tag) sawLocked(was *tagOptions, maxID int64) {
	if of := t.options.inForce(); of == nil {
		t.misfitIsLocked(nil)
	} else if t.known.seen = max(t.known.seen, periodOf(maxID)); t.misfit != "" {
		_ = t.misfitLocked(of, t.alloc.rt.Now()) // for the alarm, which would else last until a caller comes
	}
	b := t.buf
	if b == nil {
		return
	}
	if in, ok := b.term.(periodTerm); was.inForce() != t.options.inForce() || ok && in.day < t.known.seen {
		t.enterLocked(b, nil)
	}
}

// inForce returns the period of options that are in force, nil if there is none.
func (o *tagOptions) inForce() *period {
	if o == nil {
		return nil
	}
	return o.period
}

// inPeriod returns a range of the period that is now, after moving the row there if r is of an earlier one.
func (t *Tag) inPeriod(of *period, r reserved) (reserved, error) {
	lost := &t.alloc.counters.lost[lossPeriod]
	if periodOf(r.Range.Lo) < of.begin(t.alloc.rt.Now()) {
		lost.Add(r.Range.Len())
		err := t.beginPeriod(of)
		if err != nil {
			return reserved{}, err
		}
		if r, err = t.reserve(); err != nil { // a range of the period before is a regress
			return reserved{}, err
		}
	}
	day := periodOf(r.Range.Lo)
	t.mu.Lock()
	seen := t.known.seen
	t.known.seen = max(seen, day)
	t.mu.Unlock()
	switch {
	case day < seen:
		lost.Add(r.Range.Len())
		return reserved{}, fmt.Errorf("store answered %v for tag %q, whose row was in the period from %s before: dropped", r.Range, t.name, dateOf(seen))
	case periodOf(r.Range.Hi-1) != day:
		lost.Add(r.Range.Len())
		return reserved{}, fmt.Errorf("%w: the %d numbers of tag %q in the period from %s are used up", leaf.ErrOverflow, int64(1)<<number.PeriodBits, t.name, dateOf(day))
	}
	return r, nil
}

// beginPeriod moves the row to the first number of the period that is now. A load has just moved
// the row, so its time of change is what the database's clock says. One reading of the node's clock is compared with
// that and says which period it is: the clock may be set between two readings.
func (t *Tag) beginPeriod(of *period) error {
	a := t.alloc
	row, err := t.shard.lookup(a.base, t.name)
	if err != nil {
		return err
	}
	now := a.rt.Now()
	day := of.begin(now)
	if ahead := now.Sub(row.UpdateTime); !row.UpdateTime.IsZero() && ahead > longestAhead {
		return t.tooEarly(of, day, now, ahead)
	}
	maxID, err := bounded.Do(a.base, &t.shard.calls, a.cfg.LoadTimeout, func(ctx context.Context) (int64, error) {
		return t.shard.store.Raise(ctx, t.name, day<<number.PeriodBits+1)
	})
	if err != nil {
		return fmt.Errorf("move the row of tag %q to the period from %s: %w", t.name, dateOf(day), err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.known.seen = max(t.known.seen, periodOf(maxID))
	return nil
}
