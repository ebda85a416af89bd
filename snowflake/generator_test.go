package snowflake_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leaf-idgen/leaf/snowflake"
)

// TestNextFields: an ID holds the clock's unit, the datacentre and the worker, for
// each preset, with the largest values that fit.
func TestNextFields(t *testing.T) {
	for _, name := range snowflake.Presets() {
		t.Run(name, func(t *testing.T) {
			l, _ := snowflake.Preset(name)
			clk := newClock(start)
			c := clk.config(l)
			c.Datacenter, c.Worker = 1<<l.DatacenterBits-1, 1<<l.WorkerBits-1
			g := generator(t, c)
			for range 100 { // more than one unit of 1 ms
				p := parts(t, g)
				unit, err := l.Floor(clk.t.UnixMilli())
				if err != nil {
					t.Fatal(err)
				}
				if p.Unit != unit || p.Datacenter != c.Datacenter || p.Worker != c.Worker {
					t.Fatalf("%+v at unit %d", p, unit)
				}
				clk.step(100 * time.Microsecond)
			}
		})
	}
}

// TestModel lets random clocks, bounds, batches and restarts loose on generators
// of one worker, for every layout: each ID is larger than all before, at or above
// the floor, below the bound, and of the clock's own unit; each error has its reason.
func TestModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := layouts().Draw(t, "layout")
		l.TimeBits = max(l.TimeBits, 12)
		l.SequenceBits = min(l.SequenceBits, 63-l.TimeBits-2, 12)
		l.WorkerBits, l.DatacenterBits = 1, 1
		unit := l.Unit
		clk := newClock(l.Epoch + rapid.Int64Range(0, 2000*unit.Milliseconds()).Draw(t, "begin"))
		c := clk.config(l)
		c.Tolerance = rapid.SampledFrom([]time.Duration{0, -1, 3 * unit}).Draw(t, "tolerance")
		c.Policy = rapid.SampledFrom([]snowflake.Policy{snowflake.Refuse, snowflake.UseReserved}).Draw(t, "policy")
		tolerance := map[time.Duration]time.Duration{0: snowflake.DefaultTolerance, -1: 0, 3 * unit: 3 * unit}[c.Tolerance]
		c.Bound = clk.t.UnixMilli() + 5*unit.Milliseconds() + 1
		c.Floor = clk.t.UnixMilli() - 1
		g := generator(t, c)
		bound, floor, last, lastUnit := l.Ceil(c.Bound), l.Ceil(c.Floor), int64(-1), int64(-1)

		took := func(lo, hi int64) {
			if lo <= last || hi < lo {
				t.Fatalf("IDs [%d, %d] after %d", lo, hi, last)
			}
			first, p := decode(t, g, lo), decode(t, g, hi)
			if first.Unit != p.Unit || p.Unit < floor || p.Unit >= bound || p.Worker != 1 || p.Datacenter != 0 {
				t.Fatalf("%+v to %+v with floor %d, bound %d", first, p, floor, bound)
			}
			last, lastUnit = hi, p.Unit
		}
		atClock := func() {
			now, err := l.Floor(clk.t.UnixMilli())
			if c.Policy == snowflake.Refuse && (err != nil || lastUnit != now) {
				t.Fatalf("an ID of unit %d while the clock is in %d (%v)", lastUnit, now, err)
			}
		}
		failed := func(err error) {
			now := l.Ceil(clk.t.UnixMilli() + 1) // above the unit of the clock
			switch {
			case errors.Is(err, snowflake.ErrClock) && c.Policy == snowflake.Refuse && g.Behind() > tolerance:
			case errors.Is(err, snowflake.ErrBound) && now > bound:
			case errors.Is(err, snowflake.ErrBound) && c.Policy == snowflake.UseReserved && g.Behind() > tolerance:
			case errors.Is(err, snowflake.ErrOverflow) && !clk.t.Before(l.End()):
			default:
				t.Fatalf("%v at %v, %v behind, bound %d", err, clk.t, g.Behind(), bound)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"step": func(t *rapid.T) {
				units := rapid.SampledFrom([]int{0, 1, 1, 1, 2, 3, 50, -1, -2, -3, -4, -60}).Draw(t, "units")
				clk.step(time.Duration(units)*unit + time.Duration(rapid.IntRange(-1500, 1500).Draw(t, "µs"))*time.Microsecond)
			},
			"next": func(t *rapid.T) {
				id, err := g.Next(context.Background())
				if err != nil {
					failed(err)
					return
				}
				took(id, id)
				atClock()
			},
			"batch": func(t *rapid.T) {
				n := rapid.IntRange(1, 1<<min(l.SequenceBits+2, 10)).Draw(t, "n")
				ranges, err := g.NextN(context.Background(), n)
				if err != nil {
					failed(err)
					lastUnit = -1 // what it took is lost, and unknown
					return
				}
				sum := int64(0)
				for _, r := range ranges {
					took(r.Lo, r.Hi-1)
					sum += r.Len()
				}
				if sum != int64(n) {
					t.Fatalf("%d IDs, want %d", sum, n)
				}
				atClock()
			},
			"bound": func(t *rapid.T) {
				to := clk.t.UnixMilli() + rapid.Int64Range(-3, 20).Draw(t, "units")*unit.Milliseconds() + 1
				bound = max(bound, l.Ceil(to))
				if got := g.SetBound(to); got != l.Millis(bound) || g.Bound() != got {
					t.Fatalf("SetBound(%d) = %d, Bound() = %d, want %d", to, got, g.Bound(), l.Millis(bound))
				}
			},
			"restart": func(t *rapid.T) {
				if rapid.IntRange(0, 4).Draw(t, "really") != 0 {
					return
				}
				before := g.Position()
				c.Floor = g.Stop()
				if c.Floor != before || g.Stop() != before || g.Position() != before {
					t.Fatalf("position %d, Stop %d, then %d and %d", before, c.Floor, g.Stop(), g.Position())
				}
				if lastUnit >= 0 && c.Floor != l.Millis(lastUnit+1) {
					t.Fatalf("Stop = %d after unit %d", c.Floor, lastUnit)
				}
				if _, err := g.Next(context.Background()); !errors.Is(err, snowflake.ErrStopped) {
					t.Fatalf("after Stop: %v", err)
				}
				if l.Ceil(c.Floor) == l.Ceil(math.MaxInt64) {
					t.Skip("the layout is used up")
				}
				c.Bound = l.Millis(bound)
				floor = l.Ceil(c.Floor)
				g = generator(t, c)
			},
		})
	})
}

// TestNewRefuses: a configuration outside its limits names the field.
func TestNewRefuses(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*snowflake.Config)
		is     error
		want   string
	}{
		{"no layout", func(c *snowflake.Config) { c.Layout = snowflake.Layout{} }, snowflake.ErrInvalid, "unit=0s"},
		{"worker too large", func(c *snowflake.Config) { c.Worker = 1024 }, snowflake.ErrInvalid, "worker=1024: must be 0 to 1023"},
		{"negative worker", func(c *snowflake.Config) { c.Worker = -1 }, snowflake.ErrInvalid, "worker=-1"},
		{"datacenter without bits", func(c *snowflake.Config) { c.Datacenter = 1 }, snowflake.ErrInvalid, "datacenter=1: must be 0 to 0"},
		{"unknown policy", func(c *snowflake.Config) { c.Policy = 2 }, snowflake.ErrInvalid, "policy=2"},
		{"floor at the end", func(c *snowflake.Config) { c.Floor = snowflake.Leaf().End().UnixMilli() }, snowflake.ErrOverflow, "floor="},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := newClock(start).config(snowflake.Leaf())
			c.change(&cfg)
			g, err := snowflake.New(cfg)
			if g != nil || !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("New = %v, %v; want %v with %q", g, err, c.is, c.want)
			}
		})
	}
}

// TestOverflow: the last unit that is used ends at the layout's End; beyond there is
// an error, also for a batch that starts before, and no number is negative.
func TestOverflow(t *testing.T) {
	for _, l := range []snowflake.Layout{
		snowflake.Leaf(),
		{Epoch: start, Unit: time.Second, TimeBits: 32, WorkerBits: 20, SequenceBits: 11},
		{Epoch: start, Unit: 10 * time.Millisecond, TimeBits: 3, WorkerBits: 50, SequenceBits: 10},
		{Epoch: 1 << 43, Unit: time.Second, TimeBits: 43, WorkerBits: 12, SequenceBits: 8},
	} {
		t.Run(l.Fingerprint(), func(t *testing.T) {
			clk := newClock(l.End().UnixMilli() - 1)
			c := clk.config(l)
			c.Worker = 1<<l.WorkerBits - 1
			g := generator(t, c)
			last := fill(t, g)
			if want := int64(1)<<l.TimeBits - 2; last != want {
				t.Fatalf("last unit %d, want %d", last, want)
			}
			if got := g.Position(); got != l.End().UnixMilli() {
				t.Errorf("position %d, want the end", got)
			}
			refused(t, g, snowflake.ErrOverflow) // after the wait for a unit that does not come
			refused(t, g, snowflake.ErrOverflow)
			clk.step(time.Duration(1<<min(l.TimeBits, 30)) * l.Unit)
			refused(t, g, snowflake.ErrOverflow)
			if got := g.Stop(); got != l.End().UnixMilli() {
				t.Errorf("Stop = %d, want the end", got)
			}
			refused(t, g, snowflake.ErrStopped)
		})
	}
	t.Run("batch", func(t *testing.T) {
		l := small()
		g := generator(t, newClock(l.End().UnixMilli()-2).config(l))
		if r, err := g.NextN(t.Context(), 17); !errors.Is(err, snowflake.ErrOverflow) || r != nil {
			t.Fatalf("NextN = %v, %v", r, err)
		}
	})
}

// TestNoAllocation: taking an ID allocates nothing.
func TestNoAllocation(t *testing.T) {
	g := generator(t, snowflake.Config{Layout: snowflake.Seconds(), Bound: snowflake.NoBound})
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() {
		if _, err := g.Next(ctx); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations per ID", n)
	}
}
