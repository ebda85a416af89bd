package sim_test

import (
	"testing"

	"github.com/leaf-idgen/leaf/sim"
	"github.com/leaf-idgen/leaf/sim/world"
)

// segmentSeeds runs seeds of segment mode and returns what they showed together.
func segmentSeeds(t *testing.T, first, n uint64) (ids int64, faults map[world.Kind]int, excused map[world.Kind]int64) {
	t.Helper()
	faults, excused = map[world.Kind]int{}, map[world.Kind]int64{}
	for seed := first; seed < first+n; seed++ {
		r := sim.Run(seed, sim.Options{Only: "segment"})
		if r.Err != nil {
			t.Errorf("%v", r.Err)
		}
		ids += r.IDs
		for k, v := range r.Faults {
			faults[k] += v
		}
		for k, v := range r.Excused {
			excused[k] += v
		}
	}
	return ids, faults, excused
}

func TestSegmentMode(t *testing.T) {
	ids, faults, excused := segmentSeeds(t, 1, 20)
	t.Logf("%d IDs, %v, %v", ids, faults, excused)
}
