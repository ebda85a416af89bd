package sim_test

import (
	"testing"

	"github.com/leaf-idgen/leaf/internal/sim"
)

// TestSequenceSeeds: no seed breaks the order of an entity's numbers, repeats one, or breaks anything else.
func TestSequenceSeeds(t *testing.T) {
	for seed := range seeds(4, 500) {
		if r := sim.Run(seed, sim.Options{Only: "sequence"}); r.Err != nil {
			t.Errorf("%v", r.Err)
		}
	}
}
