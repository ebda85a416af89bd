package snowflake_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/test/server"
)

// TestSaturation: a unit that is used up is waited for once, exactly until the next
// one begins, which then starts at 0. Nothing spins.
func TestSaturation(t *testing.T) {
	for _, name := range []string{"leaf", "js53"} {
		t.Run(name, func(t *testing.T) {
			l, _ := snowflake.Preset(name)
			clk := newClock(l.Millis(l.Ceil(start)))
			clk.step(300 * time.Microsecond)
			g := generator(t, clk.config(l))
			first := fill(t, g)
			for i := range 5 {
				p := parts(t, g)
				if p.Unit != first+int64(i)+1 || p.Sequence != 0 {
					t.Fatalf("after unit %d: %+v", first+int64(i), p)
				}
				want := l.Unit
				if i == 0 {
					want -= 300 * time.Microsecond
				}
				if w := clk.waits(); !slices.Equal(w, []time.Duration{want}) {
					t.Fatalf("waited %v, want %v once", w, want)
				}
				if got := fill(t, g); got != p.Unit {
					t.Fatalf("unit %d ended before it was used up", p.Unit)
				}
			}
		})
	}
}

// TestSaturationOfTheWidest: the same where time and sequence fill the word but for
// the bits that it keeps to itself.
func TestSaturationOfTheWidest(t *testing.T) {
	l := snowflake.Layout{Unit: time.Millisecond, TimeBits: 43, SequenceBits: 19}
	clk := newClock(start)
	c := clk.config(l)
	c.Worker = 0
	g := generator(t, c)
	for range 6 {
		ranges, err := g.NextN(t.Context(), 100_000)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range ranges[1:] {
			if first := decode(t, g, r.Lo); first.Unit != start+1 || first.Sequence != 0 {
				t.Errorf("after the unit was used up: %+v", first)
			}
		}
	}
	if w := clk.waits(); len(w) != 1 {
		t.Errorf("waits %v", w)
	}
}

// TestCeiling: one goroutine reaches the layout's ceiling, on a clock whose reading
// costs 60 ns and whose sleep takes 80 µs longer than asked for.
func TestCeiling(t *testing.T) {
	clk := newClock(start)
	clk.cost, clk.over = 60*time.Nanosecond, 80*time.Microsecond
	l := snowflake.Leaf()
	g := generator(t, clk.config(l))
	first := fill(t, g)
	const units = 20
	for range units * 4096 {
		next(t, g)
	}
	if got := decode(t, g, next(t, g)-1).Unit; got > first+units+1 {
		t.Errorf("%d units for the IDs of %d", got-first, units)
	}
	if n := len(clk.waits()); n > units+2 {
		t.Errorf("%d waits in %d units", n, units)
	}
}

// TestFreshStart: a unit starts at random, below 128 and below a quarter of its
// capacity, all values occur; also the very first one, and one after a gap behind a
// unit that was used up.
func TestFreshStart(t *testing.T) {
	for _, c := range []struct {
		bits  int
		below int64
	}{{0, 1}, {1, 1}, {2, 1}, {3, 2}, {6, 16}, {8, 64}, {9, 128}, {12, 128}, {22, 128}} {
		t.Run(fmt.Sprintf("%d bits", c.bits), func(t *testing.T) {
			l := snowflake.Layout{Epoch: start - 1000, Unit: time.Millisecond, TimeBits: 30, WorkerBits: 1, SequenceBits: c.bits}
			clk := newClock(start)
			cfg := clk.config(l)
			check := func(seen map[int64]bool, p snowflake.Parts) {
				seen[p.Sequence] = true
				if p.Sequence >= c.below {
					t.Fatalf("a unit starts at %d, want below %d", p.Sequence, c.below)
				}
			}
			kinds := map[string]map[int64]bool{"first": {}, "next": {}, "after a gap": {}}
			for range 1000 {
				cfg.Floor = clk.t.UnixMilli()
				g := generator(t, cfg)
				check(kinds["first"], parts(t, g))
				clk.step(time.Millisecond)
				check(kinds["next"], parts(t, g))
				if c.bits < 7 {
					fill(t, g)
					clk.step(2 * time.Millisecond)
					check(kinds["after a gap"], parts(t, g))
				}
			}
			for kind, seen := range kinds {
				if len(seen) != int(c.below) && (c.bits < 7 || kind != "after a gap") {
					t.Errorf("%s: %d of %d values", kind, len(seen), c.below)
				}
			}
		})
	}
}

// TestSpread is what the random start is for: at one ID per unit, id % n is uniform
// for every n from 2 to 128 (chi-square; the seed is fixed, so it passes or fails
// for good).
func TestSpread(t *testing.T) {
	ids := 30_000
	if server.Long() {
		ids = 1_000_000
	}
	for _, l := range []snowflake.Layout{snowflake.Leaf(), snowflake.JS53(), snowflake.Seconds()} {
		t.Run(l.Fingerprint(), func(t *testing.T) {
			clk := newClock(start)
			c := clk.config(l)
			c.Rand = rand.New(rand.NewPCG(3, 4)).Uint64
			g := generator(t, c)
			var counts [129][128]float64
			for range ids {
				id := next(t, g)
				for n := 2; n <= 128; n++ {
					counts[n][id%int64(n)]++
				}
				clk.step(l.Unit)
			}
			for n := 2; n <= 128; n++ {
				expected, sum := float64(ids)/float64(n), 0.0
				for _, count := range counts[n][:n] {
					sum += (count - expected) * (count - expected) / expected
				}
				// Wilson and Hilferty: the value that chance exceeds once in 10,000 times.
				df := float64(n - 1)
				cube := 1 - 2/(9*df) + 3.72*math.Sqrt(2/(9*df))
				if limit := df * cube * cube * cube; sum > limit {
					t.Errorf("id %% %d: chi-square %.0f, limit %.0f", n, sum, limit)
				}
			}
		})
	}
}

// TestClockSteps: what one call does after the clock has stepped back.
func TestClockSteps(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name      string
		tolerance time.Duration
		back      time.Duration
		frozen    bool
		want      error
		waits     []time.Duration
	}{
		{"within the default", 0, 5 * ms, false, nil, []time.Duration{5 * ms}},
		{"1 ns more", 0, 5*ms + 1, false, snowflake.ErrClock, nil},
		{"an hour", 0, time.Hour, false, snowflake.ErrClock, nil},
		{"to before the epoch", 0, 30 * 365 * 24 * time.Hour, false, snowflake.ErrClock, nil},
		{"within a longer one", 20 * ms, 20 * ms, false, nil, []time.Duration{20 * ms}},
		{"none is waited out", -1, 1, false, snowflake.ErrClock, nil},
		{"a clock that stands still", 0, 3 * ms, true, snowflake.ErrClock, []time.Duration{3 * ms, 3 * ms}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := snowflake.Leaf()
			clk := newClock(start)
			cfg := clk.config(l)
			cfg.Tolerance = c.tolerance
			g := generator(t, cfg)
			before := next(t, g)
			clk.step(-c.back)
			clk.frozen = c.frozen
			if got := g.Behind(); got != c.back {
				t.Errorf("Behind = %v, want %v", got, c.back)
			}
			id, err := g.Next(t.Context())
			if !errors.Is(err, c.want) || c.want == nil && (err != nil || id <= before) {
				t.Fatalf("Next = %d, %v after %d; want %v", id, err, before, c.want)
			}
			if w := clk.waits(); !slices.Equal(w, c.waits) {
				t.Errorf("waits %v, want %v", w, c.waits)
			}
			var figures *snowflake.ClockError
			if c.want != nil && (!errors.As(err, &figures) || figures.Behind != c.back) {
				t.Errorf("error %v, want %v behind", err, c.back)
			}
			if p := g.Position(); p != start+1 {
				t.Errorf("position %d, want %d", p, start+1)
			}
			clk.set(start) // the unit of the last ID still has numbers
			if got := next(t, g); got <= before {
				t.Errorf("%d after %d", got, before)
			}
			if got := g.Behind(); got != 0 {
				t.Errorf("Behind = %v with a right clock", got)
			}
		})
	}
}

// TestAbsurdClock: a clock in the year 1 is behind, one in the year 9999 is not, though
// neither distance fits a Duration.
func TestAbsurdClock(t *testing.T) {
	clk := newClock(start)
	g := generator(t, clk.config(snowflake.Leaf()))
	next(t, g)
	clk.t = time.Time{}
	refused(t, g, snowflake.ErrClock)
	if got := g.Behind(); got < 290*365*24*time.Hour {
		t.Errorf("Behind = %v in the year 1", got)
	}
	clk.t = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	refused(t, g, snowflake.ErrOverflow)
	if got := g.Behind(); got != 0 {
		t.Errorf("Behind = %v in the year 9999", got)
	}
	if w := clk.waits(); len(w) != 0 {
		t.Errorf("waits %v", w)
	}
}

// TestStepDuringAWait: the clock steps back while a call waits for the next unit, and
// steps further back while it waits for that.
func TestStepDuringAWait(t *testing.T) {
	const ms = time.Millisecond
	t.Run("within the tolerance", func(t *testing.T) {
		clk := newClock(start)
		g := generator(t, clk.config(small()))
		unit := fill(t, g)
		clk.atWait(func() { clk.step(-2 * ms) })
		p := parts(t, g)
		if p.Unit != unit+1 || p.Sequence != 0 {
			t.Errorf("%+v after unit %d", p, unit)
		}
		if w := clk.waits(); !slices.Equal(w, []time.Duration{ms, 2 * ms, ms}) {
			t.Errorf("waits %v", w)
		}
	})
	t.Run("beyond it", func(t *testing.T) {
		clk := newClock(start)
		g := generator(t, clk.config(small()))
		fill(t, g)
		clk.atWait(func() { clk.step(-6 * ms) })
		refused(t, g, snowflake.ErrClock)
	})
	t.Run("twice", func(t *testing.T) {
		clk := newClock(start)
		g := generator(t, clk.config(small()))
		next(t, g)
		clk.step(-3 * ms)
		clk.atWait(func() { clk.step(-1 * ms) }) // 4 ms behind: the call has 3 ms left of 6
		refused(t, g, snowflake.ErrClock)
		if w := clk.waits(); !slices.Equal(w, []time.Duration{3 * ms, 3 * ms}) {
			t.Errorf("waits %v", w)
		}
	})
}

// TestContext: a wait ends with its context, and says what it waited for; a context
// that is over does not matter where nothing waits.
func TestContext(t *testing.T) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	l := small()
	clk := newClock(start)
	g := generator(t, clk.config(l))
	if _, err := g.Next(over); err != nil {
		t.Fatalf("without a wait: %v", err)
	}
	fill(t, g)
	_, err := g.Next(over)
	wantErr(t, err, snowflake.ErrSaturated)
	wantErr(t, err, context.Canceled)
	clk.set(start - 2)
	_, err = g.Next(over)
	wantErr(t, err, snowflake.ErrClock)
	wantErr(t, err, context.Canceled)
	ranges, err := g.NextN(over, 2)
	wantErr(t, err, context.Canceled)
	if ranges != nil {
		t.Errorf("ranges %v with an error", ranges)
	}
}

// TestFloor: no ID has a unit before the floor's first whole unit; a clock below
// it is a clock that is behind.
func TestFloor(t *testing.T) {
	l := snowflake.Seconds()
	whole := l.Millis(l.Ceil(start)) // a unit starts here
	for _, c := range []struct {
		name  string
		floor int64
		clock int64
		first int64 // ms of the first ID's unit, 0: refused
	}{
		{"at the clock", whole, whole, whole},
		{"within the clock's second", whole + 1, whole + 2, 0},
		{"rounded up, nearly there", whole + 1, whole + 996, whole + 1000},
		{"rounded up, reached", whole + 1, whole + 1000, whole + 1000},
		{"ahead by an hour", whole + 3_600_000, whole, 0},
		{"long ago", whole - 3_600_000, whole + 5, whole},
		{"none", 0, whole + 5, whole},
		{"before the epoch", -1, whole + 5, whole},
	} {
		t.Run(c.name, func(t *testing.T) {
			clk := newClock(c.clock)
			cfg := clk.config(l)
			cfg.Floor = c.floor
			g := generator(t, cfg)
			if got := g.Position(); got != l.Millis(l.Ceil(c.floor)) {
				t.Errorf("position %d, want the floor", got)
			}
			if got, want := g.Behind(), max(0, time.Duration(l.Millis(l.Ceil(c.floor))-c.clock)*time.Millisecond); got != want {
				t.Errorf("Behind = %v, want %v", got, want)
			}
			if c.first == 0 {
				refused(t, g, snowflake.ErrClock)
				if got := g.Stop(); got != l.Millis(l.Ceil(c.floor)) {
					t.Errorf("Stop = %d without an ID, want the floor", got)
				}
				return
			}
			if got := l.Millis(parts(t, g).Unit); got != c.first {
				t.Errorf("first unit at %d, want %d", got, c.first)
			}
		})
	}
}

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
