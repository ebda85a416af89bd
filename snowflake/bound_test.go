package snowflake_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/snowflake"
)

// TestBound: at the bound calls fail at once, and go on once it is raised. A clock
// that jumps past it moves nothing.
func TestBound(t *testing.T) {
	l := snowflake.Leaf()
	clk := newClock(start)
	c := clk.config(l)
	c.Bound = start + 2
	g := generator(t, c)
	next(t, g)
	clk.step(time.Millisecond)
	last := next(t, g)
	clk.step(time.Millisecond)
	refused(t, g, snowflake.ErrBound)
	clk.step(70 * 365 * 24 * time.Hour / 2)
	refused(t, g, snowflake.ErrBound)
	if p := g.Position(); p != start+2 {
		t.Errorf("position %d, want %d: the jump moved it", p, start+2)
	}
	clk.set(start + 1)
	if id := next(t, g); id != last+1 {
		t.Errorf("%d after %d", id, last)
	}
	clk.set(start + 2)
	for _, s := range []struct{ to, holds int64 }{{start, start + 2}, {-1, start + 2}, {start + 3, start + 3}, {start + 2, start + 3}} {
		if got := g.SetBound(s.to); got != s.holds || g.Bound() != s.holds {
			t.Errorf("SetBound(%d) = %d, Bound() = %d; want %d", s.to, got, g.Bound(), s.holds)
		}
	}
	next(t, g)
	if ranges, err := g.NextN(t.Context(), 5000); !errors.Is(err, snowflake.ErrBound) || ranges != nil {
		t.Errorf("a batch over the bound: %v, %v", ranges, err)
	}
	if w := clk.waits(); len(w) != 1 { // the batch, for the next unit
		t.Errorf("waits %v", w)
	}
	if got := g.SetBound(snowflake.NoBound); got != l.End().UnixMilli() {
		t.Errorf("without a bound: %d, want the end", got)
	}
}

// TestBoundRoundsUp: a bound within a unit allows that unit, and its successor as a
// floor starts after it.
func TestBoundRoundsUp(t *testing.T) {
	l := snowflake.Seconds()
	whole := l.Millis(l.Ceil(start))
	clk := newClock(whole + 999)
	c := clk.config(l)
	c.Bound = whole + 1
	g := generator(t, c)
	p := parts(t, g)
	clk.step(time.Millisecond)
	refused(t, g, snowflake.ErrBound)
	c.Floor, c.Bound = whole+1, snowflake.NoBound
	if q := parts(t, generator(t, c)); q.Unit != p.Unit+1 {
		t.Errorf("unit %d, then its successor %d", p.Unit, q.Unit)
	}
}

// TestNoBoundNoID: the zero bound issues nothing.
func TestNoBoundNoID(t *testing.T) {
	clk := newClock(start)
	c := clk.config(snowflake.Leaf())
	c.Bound = 0
	g := generator(t, c)
	refused(t, g, snowflake.ErrBound)
	if g.Bound() != snowflake.LeafEpoch {
		t.Errorf("bound %d, want the epoch", g.Bound())
	}
}
