package snowflake_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/snowflake"
)

// TestNextN: exactly n IDs, consecutive within a unit, half of which is used up before
// the next one begins, single IDs of the same unit after them.
func TestNextN(t *testing.T) {
	for _, c := range []struct{ n, units int }{{1, 1}, {2, 1}, {256, 1}, {1921, 1}, {2049, 1}, {10_000, 5}, {100_000, 49}} {
		t.Run(fmt.Sprint(c.n), func(t *testing.T) {
			clk := newClock(start)
			g := generator(t, clk.config(snowflake.Leaf()))
			one := next(t, g)
			ranges, err := g.NextN(t.Context(), c.n)
			if err != nil {
				t.Fatal(err)
			}
			last, sum := one, int64(0)
			for i, r := range ranges {
				first, end := decode(t, g, r.Lo), decode(t, g, r.Hi-1)
				if r.Lo <= last || first.Unit != end.Unit || first.Worker != 1 || end.Worker != 1 {
					t.Fatalf("range %d is %+v to %+v after %d", i, first, end, last)
				}
				if i == 0 && r.Lo != one+1 || i > 0 && first.Sequence != 0 && r.Lo != last+1 || i < len(ranges)-1 && end.Sequence != 2047 && end.Sequence != 4095 {
					t.Fatalf("range %d is %+v to %+v", i, first, end)
				}
				last = r.Hi - 1
				sum += r.Len()
			}
			if sum != int64(c.n) || len(ranges) < c.units || len(ranges) > c.units+1 {
				t.Errorf("%d IDs in %d ranges, want %d in about %d", sum, len(ranges), c.n, c.units)
			}
			if got := next(t, g); got <= last {
				t.Errorf("then %d after %d", got, last)
			}
			if waits := len(clk.waits()); waits > len(ranges) {
				t.Errorf("%d waits for %d units", waits, len(ranges))
			}
		})
	}
}

func TestNextNRefuses(t *testing.T) {
	g := generator(t, newClock(start).config(snowflake.Leaf()))
	for _, n := range []int{-1, 0, snowflake.MaxBatch + 1} {
		if ranges, err := g.NextN(t.Context(), n); !errors.Is(err, snowflake.ErrInvalid) || ranges != nil {
			t.Errorf("NextN(%d) = %v, %v", n, ranges, err)
		}
	}
	if p := g.Position(); p != snowflake.LeafEpoch {
		t.Errorf("position %d: a refused batch took something", p)
	}
}

// TestNextNInTheMiddle: the clock steps back while a batch waits for its second
// unit: within the tolerance it goes on, beyond it the whole batch fails.
func TestNextNInTheMiddle(t *testing.T) {
	for _, c := range []struct {
		back time.Duration
		want error
	}{{3 * time.Millisecond, nil}, {time.Second, snowflake.ErrClock}} {
		t.Run(c.back.String(), func(t *testing.T) {
			clk := newClock(start)
			g := generator(t, clk.config(small()))
			clk.atWait(func() { clk.step(-c.back) })
			ranges, err := g.NextN(t.Context(), 12)
			if !errors.Is(err, c.want) || (err == nil) != (c.want == nil) || (err == nil) != (ranges != nil) {
				t.Fatalf("NextN = %v, %v; want %v", ranges, err, c.want)
			}
			if p := g.Position(); err != nil && p != start+1 {
				t.Errorf("position %d: what the batch took must not be taken again", p)
			}
		})
	}
}

// TestBatchesLeaveRoom: however many large batches are taken in a unit, single IDs and
// small batches of the same unit need not wait. A batch of a 16th of the unit is small.
func TestBatchesLeaveRoom(t *testing.T) {
	for _, l := range []snowflake.Layout{snowflake.Leaf(), snowflake.JS53(), small()} {
		clk := newClock(start)
		g := generator(t, clk.config(l))
		capacity := 1 << l.SequenceBits
		for range 5 {
			waiting := false
			clk.atWait(func() {
				waiting = true
				unit := l.Ceil(clk.now().UnixMilli() + 1)
				for _, n := range []int{1, max(1, capacity/16)} {
					ranges, err := g.NextN(t.Context(), n)
					if err != nil || len(ranges) != 1 {
						t.Fatalf("a batch of %d beside a large one: %v, %v", n, ranges, err)
					}
					if p := decode(t, g, ranges[0].Lo); p.Unit >= unit {
						t.Errorf("a batch of %d waited for unit %d, it is %d", n, p.Unit, unit-1)
					}
				}
				clk.step(l.Unit)
			})
			if _, err := g.NextN(t.Context(), capacity); err != nil {
				t.Fatal(err)
			}
			if !waiting {
				t.Error("a batch of a whole unit waited for none")
			}
		}
	}
}

// TestSmallStepBackOfABatch: a batch waits out a step back within the tolerance, and
// fails beyond it, in every layout. No ID of it lies at or below the one before.
func TestSmallStepBackOfABatch(t *testing.T) {
	for _, c := range []struct {
		name   string
		layout snowflake.Layout
	}{
		{"leaf", snowflake.Leaf()}, {"dc", snowflake.DC()}, {"js53", snowflake.JS53()}, {"seconds", snowflake.Seconds()}, {"small", small()},
	} {
		t.Run(c.name, func(t *testing.T) {
			clk := newClock(start)
			cfg := clk.config(c.layout)
			cfg.Tolerance = 5 * time.Millisecond
			g := generator(t, cfg)
			edge := c.layout.Millis(c.layout.Ceil(start + 1)) // a unit begins
			clk.set(edge)
			before := next(t, g)
			for _, n := range []int{1, 3, 100} {
				clk.step(-3 * time.Millisecond)
				if id := next(t, g); id <= before {
					t.Fatalf("3 ms back: %d after %d", id, before)
				}
				clk.set(g.Position())
				before = next(t, g)
				if w := clk.waits(); len(w) == 0 || w[0] != 3*time.Millisecond {
					t.Errorf("3 ms back, a call of Next: waits %v", w)
				}
				clk.step(-3 * time.Millisecond)
				ranges, err := g.NextN(t.Context(), n)
				if err != nil {
					t.Fatalf("3 ms back, a batch of %d: %v", n, err)
				}
				for _, r := range ranges {
					if r.Lo <= before {
						t.Fatalf("3 ms back, a batch of %d: %v after %d", n, ranges, before)
					}
					before = r.Hi - 1
				}
				if w := clk.waits(); len(w) == 0 || w[0] != 3*time.Millisecond {
					t.Errorf("3 ms back, a batch of %d: waits %v", n, w)
				}
				position := g.Position()
				clk.set(position)
				before = next(t, g)
				clk.step(-6 * time.Millisecond)
				if ranges, err := g.NextN(t.Context(), n); !errors.Is(err, snowflake.ErrClock) || ranges != nil {
					t.Errorf("6 ms back, a batch of %d: %v, %v", n, ranges, err)
				}
				if got := g.Position(); got <= position-1 || len(clk.waits()) > 0 {
					t.Errorf("6 ms back: position %d, before %d", got, position)
				}
				clk.set(position)
			}
		})
	}
}
