package snowflake

import (
	"math"
	"time"
)

// now reads the clock. The direct call keeps the usual case free of an indirect one.
func (g *Generator) now() time.Time {
	if g.c.Now == nil {
		return time.Now()
	}
	return g.c.Now()
}

// unit returns the unit that t lies in: -1 before the epoch (dividing would round
// towards 0, and make a moment before the epoch look like unit 0), the end of the
// layout or more past its end.
func (g *Generator) unit(t time.Time) int64 {
	since := t.UnixMilli() - g.epoch
	if since < 0 {
		return -1
	}
	if g.perUnit == 1 {
		return since
	}
	return since / g.perUnit
}

// until returns the time from t to the start of unit, negative if it has begun.
// It is cut off at the longest Duration, 292 years.
func (g *Generator) until(unit int64, t time.Time) time.Duration {
	const longest = math.MaxInt64 / int64(time.Millisecond)
	ms := g.c.Layout.Millis(unit) - t.UnixMilli()
	return time.Duration(min(max(ms, -longest), longest))*time.Millisecond - time.Duration(t.Nanosecond())%time.Millisecond
}

// grant is what UseReserved allows: a unit, from a moment on.
type grant struct {
	unit int64
	from time.Time
}

// reserved returns the unit that UseReserved may issue from at t, while the clock
// is behind the position at, and how long until it may be the one after.
//
// The next unit is granted when the granted one has lasted for a unit of elapsed
// time. Time without calls grants nothing: the window up to the bound may have to
// last. A grant from an earlier step back lies below the position, or is the position
// itself; either way it brings no unit forward.
func (g *Generator) reserved(at int64, t time.Time) (unit int64, rest time.Duration) {
	per := time.Duration(g.perUnit) * time.Millisecond
	for {
		old, unit := g.granted.Load(), at
		if old != nil && old.unit > at {
			return old.unit, per // granted to another call, which has not taken from it yet
		}
		if old != nil && old.unit == at {
			elapsed := t.Sub(old.from)
			switch {
			case elapsed < 0:
				// Another goroutine read the clock later and was here earlier. Or the clock has
				// no monotonic part and stepped once more; then a unit begins afresh.
				if t = g.now(); t.Sub(old.from) >= 0 {
					continue
				}
			case elapsed < per:
				return at, per - elapsed
			default:
				unit = at + 1
			}
		}
		if g.granted.CompareAndSwap(old, &grant{unit: unit, from: t}) {
			return unit, per
		}
	}
}
