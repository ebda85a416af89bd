package sim_test

import (
	"testing"

	"github.com/leaf-idgen/leaf/internal/sim"
	"github.com/leaf-idgen/leaf/internal/sim/world"
	"github.com/leaf-idgen/leaf/internal/test/long"
)

// seeds returns many if LEAF_LONG asks for the full figures, else few, of which the race
// detector gets a twentieth, and make check a quarter.
func seeds(few, many uint64) uint64 {
	switch {
	case long.Asked():
		return many
	case long.Raced:
		return max(few/20, 1)
	case testing.Short():
		return few / 4
	}
	return few
}

// TestSegmentSeeds: no seed breaks an invariant, and every run is large enough. With
// LEAF_LONG every fault of the mode takes effect in some run, and every allowed violation that
// docs/GUARANTEES.md gives is needed in one: else the documents promise too little.
func TestSegmentSeeds(t *testing.T) {
	faults, allowed := map[world.Kind]int{}, map[world.Kind]int64{}
	for seed := range seeds(10, 2000) {
		r := sim.Run(seed, sim.Options{Only: "segment"})
		if r.Err != nil {
			t.Errorf("%v", r.Err)
			continue
		}
		if r.Nodes < 3 || r.IDs < sim.LeastIDs || r.Struck < 10 {
			t.Errorf("seed %d: %d nodes, %d IDs, %d faults", seed, r.Nodes, r.IDs, r.Struck)
		}
		for k, n := range r.Faults {
			faults[k] += n
		}
		for k, n := range r.Allowed {
			allowed[k] += n
		}
	}
	if !long.Asked() {
		return
	}
	for _, k := range sim.Kinds("segment") {
		if faults[k] == 0 {
			t.Errorf("%q never took effect", k)
		}
	}
	for _, k := range []world.Kind{
		world.FailoverLoses, world.Restored, world.SplitBrain, world.RowRecreated, world.FenceWiped, world.FenceRestored, sim.Degraded, sim.ImageRestored,
	} {
		if allowed[k] == 0 {
			t.Errorf("no ID repeated by %q", k)
		}
	}
}
