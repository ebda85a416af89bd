package snowflake_test

import (
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/snowflake"
)

// reserving is a generator that goes on in its reserved window, on a clock that has
// issued an ID and then stepped back.
func reserving(t *testing.T, l snowflake.Layout, back time.Duration) (*snowflake.Generator, *clock, snowflake.Parts) {
	t.Helper()
	clk := newClock(l.Millis(l.Ceil(start)))
	c := clk.config(l)
	c.Policy = snowflake.UseReserved
	c.Bound = clk.t.UnixMilli() + 10*l.Unit.Milliseconds()
	g := generator(t, c)
	p := parts(t, g)
	clk.step(-back)
	return g, clk, p
}

// TestUseReserved: far behind, IDs go on from the position at the pace of elapsed
// time, and end at the bound.
func TestUseReserved(t *testing.T) {
	for _, name := range []string{"leaf", "js53", "seconds"} {
		t.Run(name, func(t *testing.T) {
			l, _ := snowflake.Preset(name)
			g, clk, first := reserving(t, l, time.Hour)
			if p := parts(t, g); p.Unit != first.Unit || p.Sequence != first.Sequence+1 {
				t.Fatalf("%+v after %+v", p, first)
			}
			clk.step(l.Unit - 1)
			if p := parts(t, g); p.Unit != first.Unit {
				t.Fatalf("%+v before a unit has passed", p)
			}
			clk.step(1)
			if p := parts(t, g); p.Unit != first.Unit+1 {
				t.Fatalf("%+v after one unit", p)
			}
			clk.step(3 * l.Unit) // without a call: grants no more than one unit does
			if p := parts(t, g); p.Unit != first.Unit+2 {
				t.Fatalf("%+v after a pause", p)
			}
			for i := int64(3); i <= 9; i++ {
				clk.step(l.Unit - 1)
				if p := parts(t, g); p.Unit != first.Unit+i-1 {
					t.Fatalf("%+v, want unit %d", p, first.Unit+i-1)
				}
				clk.step(1)
				if p := parts(t, g); p.Unit != first.Unit+i {
					t.Fatalf("%+v, want unit %d", p, first.Unit+i)
				}
			}
			clk.step(l.Unit)
			refused(t, g, snowflake.ErrBound)
			clk.step(time.Minute)
			refused(t, g, snowflake.ErrBound)
			if got, want := g.Position(), l.Millis(first.Unit+10); got != want {
				t.Errorf("position %d, want %d", got, want)
			}
			g.SetBound(g.Bound() + 1)
			if p := parts(t, g); p.Unit != first.Unit+10 {
				t.Fatalf("%+v with a higher bound, want unit %d", p, first.Unit+10)
			}
			if len(clk.waits()) != 0 {
				t.Error("it waited")
			}
		})
	}
}

// TestUseReservedSaturated: a unit that is used up is waited for until elapsed time
// allows the next one.
func TestUseReservedSaturated(t *testing.T) {
	g, clk, first := reserving(t, small(), time.Second)
	next(t, g) // from here on elapsed time counts
	clk.step(300 * time.Microsecond)
	if got := fill(t, g); got != first.Unit {
		t.Fatalf("unit %d, want %d", got, first.Unit)
	}
	p := parts(t, g)
	if p.Unit != first.Unit+1 || p.Sequence != 0 {
		t.Fatalf("%+v after unit %d", p, first.Unit)
	}
	if w := clk.waits(); len(w) != 1 || w[0] != 700*time.Microsecond {
		t.Errorf("waits %v, want 700µs", w)
	}
}

// TestUseReservedAtStart: a clock below the floor of a new generator.
func TestUseReservedAtStart(t *testing.T) {
	l := snowflake.Leaf()
	clk := newClock(start)
	c := clk.config(l)
	c.Policy, c.Floor, c.Bound = snowflake.UseReserved, start+3_600_000, start+3_600_001
	g := generator(t, c)
	p := parts(t, g)
	if got := l.Millis(p.Unit); got != c.Floor {
		t.Errorf("first unit at %d, want the floor", got)
	}
	clk.step(time.Millisecond)
	refused(t, g, snowflake.ErrBound)
}

// TestUseReservedWithinTolerance: a small step back is waited out all the same, and
// one that outlasts twice itself is not an error.
func TestUseReservedWithinTolerance(t *testing.T) {
	g, clk, first := reserving(t, snowflake.Leaf(), 3*time.Millisecond)
	p := parts(t, g)
	if w := clk.waits(); p.Unit != first.Unit || len(w) != 1 || w[0] != 3*time.Millisecond {
		t.Errorf("%+v after %+v, waits %v", p, first, w)
	}
	clk.step(-3 * time.Millisecond)
	clk.frozen = true
	if p := parts(t, g); p.Unit != first.Unit {
		t.Errorf("%+v on a clock that stands still", p)
	}
}

// TestUseReservedAgain: when the clock is right again it counts alone; the next step
// back starts afresh from the position, however far ahead the first one was.
func TestUseReservedAgain(t *testing.T) {
	l := snowflake.Leaf()
	clk := newClock(start)
	c := clk.config(l)
	c.Policy = snowflake.UseReserved
	g := generator(t, c)
	first := parts(t, g)
	clk.step(-time.Hour)
	next(t, g)
	clk.step(time.Hour + 100*time.Millisecond) // right again; an hour has "elapsed" on a clock without a monotonic part
	healed := parts(t, g)
	if healed.Unit != first.Unit+100 {
		t.Fatalf("%+v with a right clock, first %+v", healed, first)
	}
	clk.step(-time.Minute)
	if p := parts(t, g); p.Unit != healed.Unit {
		t.Fatalf("%+v after the second step, want unit %d", p, healed.Unit)
	}
	clk.step(-time.Minute) // further back: no elapsed time can be told, so none is granted
	if p := parts(t, g); p.Unit != healed.Unit {
		t.Fatalf("%+v after the third step, want unit %d", p, healed.Unit)
	}
	clk.step(time.Millisecond)
	if p := parts(t, g); p.Unit != healed.Unit+1 {
		t.Fatalf("%+v 1 ms later, want unit %d", p, healed.Unit+1)
	}
}

// TestUseReservedForgets: a grant of an earlier step back, long ago and far ahead of
// the clock, is no head start for the next one.
func TestUseReservedForgets(t *testing.T) {
	clk := newClock(start)
	c := clk.config(snowflake.Leaf())
	c.Policy, c.Floor = snowflake.UseReserved, start+10_000
	g := generator(t, c)
	next(t, g) // 10 s ahead of the clock
	clk.step(10 * time.Second)
	p := parts(t, g) // right again, at the floor
	clk.step(-6 * time.Millisecond)
	if q := parts(t, g); q.Unit > p.Unit+1 {
		t.Errorf("unit %d, %d after the position", q.Unit, q.Unit-p.Unit)
	}
}

// TestUseReservedOlderReading: A reads the clock, then B reads it half a unit later and
// is granted the unit from there on. A's older reading must not bring that forward.
func TestUseReservedOlderReading(t *testing.T) {
	const half = time.Millisecond / 2
	g, clk, first := reserving(t, snowflake.Leaf(), time.Second)
	clk.atNow(func() { // the fast path's reading
		clk.atNow(func() { // the one that counts
			clk.step(half)
			next(t, g)
			clk.step(-half)
			clk.atNow(func() { clk.step(half) })
		})
	})
	next(t, g)
	clk.step(half) // a unit after A's reading, half of one after B's
	if p := parts(t, g); p.Unit != first.Unit {
		t.Errorf("unit %d half a unit after unit %d was granted", p.Unit, first.Unit)
	}
	clk.step(half)
	if p := parts(t, g); p.Unit != first.Unit+1 {
		t.Errorf("%+v a unit after it was granted", p)
	}
}

// TestUseReservedConcurrently: many goroutines are granted no more units than one. The
// time has a monotonic part here, as in a real program whose wall clock stepped.
func TestUseReservedConcurrently(t *testing.T) {
	l := snowflake.Layout{Unit: time.Millisecond, TimeBits: 43, SequenceBits: 3}
	begin := time.Now()
	floor := begin.UnixMilli() + 3_600_000
	g := generator(t, snowflake.Config{Layout: l, Policy: snowflake.UseReserved, Floor: floor, Bound: snowflake.NoBound})
	took := make([][]int64, 16)
	var all sync.WaitGroup
	for i := range took {
		all.Go(func() {
			for range 20 {
				id, err := g.Next(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				took[i] = append(took[i], id)
			}
		})
	}
	all.Wait()
	elapsed := time.Since(begin)
	distinct(t, took, func(int64) {})
	if units := g.Position() - floor; units > elapsed.Milliseconds()+1 {
		t.Errorf("%d units in %v", units, elapsed)
	}
}
