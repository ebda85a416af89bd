package sim_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/sim"
)

// TestLedger: it finds the same repetitions, word by word, as a set of IDs does.
func TestLedger(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // any ranges will do
	for round := range 2000 {
		var ranges []leaf.Range
		var want []int64
		seen := map[int64]bool{}
		base := []int64{-300, 0, 4096 - 150, math.MaxInt64 - 600}[round%4]
		for range 1 + rng.IntN(6) {
			lo := base + rng.Int64N(300)
			r := leaf.Range{Lo: lo, Hi: lo + 1 + rng.Int64N(1+rng.Int64N(300))}
			ranges = append(ranges, r)
			for id := r.Lo; id < r.Hi; id++ {
				if seen[id] {
					want = append(want, id)
				}
				seen[id] = true
			}
		}
		if round%40 == 3 {
			ranges, want = []leaf.Range{{Lo: math.MaxInt64 - 70, Hi: math.MaxInt64}, {Lo: math.MaxInt64 - 1, Hi: math.MaxInt64}}, []int64{math.MaxInt64 - 1}
		}
		if got := sim.Repeated(ranges); !slices.Equal(got, slices.Compact(want)) {
			t.Fatalf("%v: %v repeat, want %v", ranges, got, want)
		}
	}
}
