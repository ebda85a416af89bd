package snowflake

import (
	"context"
	"fmt"
	"time"
)

// take takes 1 to n IDs, all of one unit, and returns the word of the first and
// how many there are. It is the slow path: the first ID of a unit, batches, and
// everything that waits.
func (g *Generator) take(ctx context.Context, n uint64) (first, count uint64, err error) {
	var p patience
	most := g.most(n)
	for {
		w := g.word.Load()
		if w&stopped != 0 {
			return 0, 0, ErrStopped
		}
		at, used := int64(w>>g.shift), w&g.mask
		t := g.now()
		unit := g.unit(t)
		rest := g.until(unit+1, t)
		if unit < at {
			behind := g.until(at, t)
			if d, ok := p.wait(behind, g.c.Tolerance); ok {
				if err := g.wait(ctx, d); err != nil {
					return 0, 0, fmt.Errorf("%w: %w", &ClockError{Behind: behind, Tolerance: g.c.Tolerance}, err)
				}
				continue
			}
			if g.c.Policy == Refuse {
				return 0, 0, &ClockError{Behind: behind, Tolerance: g.c.Tolerance}
			}
			unit, rest = g.reserved(at, t)
		}
		// Before the swap: a clock that jumped ahead must not move the position, or a
		// moment in 2099 would use up everything before it. Once here is enough for the
		// swap below, because the bound never falls.
		if err := g.allowed(unit); err != nil {
			return 0, 0, err
		}
		start := used
		switch {
		case unit > at || used == 0:
			start = g.start(at, used, unit, n)
		case used >= most:
			if err := g.wait(ctx, rest); err != nil {
				return 0, 0, fmt.Errorf("%w: %w", ErrSaturated, err)
			}
			continue
		}
		first, count = uint64(unit)<<g.shift|start, min(n, most-start)
		if g.word.CompareAndSwap(w, first+count) {
			return first, count, nil
		}
	}
}

// wait waits for d, if the call may wait.
func (g *Generator) wait(ctx context.Context, d time.Duration) error {
	if g.c.Admit != nil {
		if err := g.c.Admit(ctx); err != nil {
			return err
		}
	}
	return g.c.Sleep(ctx, d)
}

// allowed returns the error that forbids unit, if any.
func (g *Generator) allowed(unit int64) error {
	l := g.c.Layout
	if unit >= l.end() {
		return fmt.Errorf("%w, %s", ErrOverflow, l.End().Format(time.RFC3339Nano))
	}
	if b := g.bound.Load(); unit >= b {
		return fmt.Errorf("%w: time %d, bound %d", ErrBound, l.Millis(unit), l.Millis(b))
	}
	return nil
}

// most returns the end of what a call for n IDs may take of a unit. A large batch
// leaves the second half to single IDs and small batches, however many callers of
// large batches there are: whatever those leave over in one unit, they would take in
// the next turn.
func (g *Generator) most(n uint64) uint64 {
	if n > g.small {
		return g.half
	}
	return g.capacity
}

// start returns the sequence that a fresh unit begins with for a call for n IDs, when
// the unit before it is (at, used): random, but 0 right after a unit that is too full for
// a batch. A large batch starts early enough to find all it needs, up to half, in the unit.
func (g *Generator) start(at int64, used uint64, unit int64, n uint64) uint64 {
	if unit == at+1 && used >= g.half {
		return 0
	}
	below := g.spread
	if n > g.small {
		below = min(below, g.half-min(n, g.half)+1)
	}
	return g.c.Rand() % below
}

// startBelow returns the limit of a random start: 1,024, so that the residues of any
// id % n up to 1,024 are equally likely, but at most a quarter of a small unit
// (docs/adr/0009). It is a power of two.
func startBelow(capacity uint64) uint64 { return max(1, min(1024, capacity/4)) }

// patience is how long one call still waits for a clock that is behind: twice the
// offset that it met first.
type patience struct {
	offset time.Duration
	left   time.Duration
}

// wait returns how long to wait for a clock that is behind, and whether to.
func (p *patience) wait(behind, tolerance time.Duration) (time.Duration, bool) {
	if behind > tolerance {
		return 0, false
	}
	if p.offset == 0 {
		p.offset, p.left = behind, 2*behind
	}
	d := min(behind, p.left)
	p.left -= d
	return d, d > 0
}
