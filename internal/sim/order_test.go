package sim_test

import (
	"testing"

	"github.com/leaf-idgen/leaf/internal/sim"
)

// TestOrderSeeds: no seed breaks the order of tags in strict order, or anything else.
func TestOrderSeeds(t *testing.T) {
	for seed := range seeds(2, 500) {
		if r := sim.Run(seed, sim.Options{Only: "order"}); r.Err != nil {
			t.Errorf("%v", r.Err)
		}
	}
}
