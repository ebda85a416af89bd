package snowflake_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/snowflake"
)

// TestNextN: exactly n IDs, consecutive within a unit, used up before the next one
// begins, single IDs of the same unit after them.
func TestNextN(t *testing.T) {
	for _, c := range []struct{ n, units int }{{1, 1}, {2, 1}, {3969, 1}, {4097, 2}, {10_000, 3}, {100_000, 25}} {
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
				if i == 0 && r.Lo != one+1 || i > 0 && first.Sequence != 0 || i < len(ranges)-1 && end.Sequence != 4095 {
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
