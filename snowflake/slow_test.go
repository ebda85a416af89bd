package snowflake_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/snowflake"
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
	for range 18 {
		ranges, err := g.NextN(t.Context(), 1<<15) // a large batch would take half of the unit only
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

// TestFreshStart: a unit starts at random, below 1,024 and below a quarter of its
// capacity, all values occur (of many, most); also the very first one, and one after a gap behind a
// unit that was used up.
func TestFreshStart(t *testing.T) {
	for _, c := range []struct {
		bits  int
		below int64
	}{{0, 1}, {1, 1}, {2, 1}, {3, 2}, {6, 16}, {8, 64}, {9, 128}, {12, 1024}, {22, 1024}} {
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
				if len(seen) != int(c.below) && (c.below < 1000 || len(seen) < 600) && (c.bits < 7 || kind != "after a gap") {
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
	long.Plain(t)
	for _, l := range []snowflake.Layout{snowflake.Leaf(), snowflake.JS53(), snowflake.Seconds()} {
		t.Run(l.Fingerprint(), func(t *testing.T) {
			ids := make([]int64, long.Load(20_000, 200_000))
			clk := newClock(start)
			c := clk.config(l)
			c.Rand = rand.New(rand.NewPCG(3, 4)).Uint64
			g := generator(t, c)
			for i := range ids {
				ids[i] = next(t, g)
				clk.step(l.Unit)
			}
			for n := int64(2); n <= 128; n++ {
				var counts [128]float64
				for _, id := range ids {
					counts[id%n]++
				}
				expected, sum := float64(len(ids))/float64(n), 0.0
				for _, count := range counts[:n] {
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
