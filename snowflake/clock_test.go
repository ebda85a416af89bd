package snowflake_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/snowflake"
)

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
