package sim_test

import (
	"testing"

	"github.com/leaf-idgen/leaf/internal/sim"
)

// TestPeriodSeeds: where a day, a month and a year end beside clocks that are off and all other faults, no seed
// issues a number of a period twice, nor one outside its period by more than rule Y says.
func TestPeriodSeeds(t *testing.T) {
	for seed := range seeds(4, 500) {
		if r := sim.Run(seed, sim.Options{Only: "period"}); r.Err != nil {
			t.Errorf("%v", r.Err)
		}
	}
}
