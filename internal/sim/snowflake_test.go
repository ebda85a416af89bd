package sim_test

import (
	"testing"

	"github.com/leaf-idgen/leaf/internal/sim"
	"github.com/leaf-idgen/leaf/internal/sim/world"
	"github.com/leaf-idgen/leaf/internal/test/long"
)

// TestSnowflakeMode runs seeds of snowflake mode. More of them run in TestCorpus and in
// make sim.
func TestSnowflakeMode(t *testing.T) {
	seeds := uint64(60)
	switch {
	case long.Asked():
		seeds = 2_000
	case testing.Short():
		seeds = 5
	case long.Raced:
		seeds = 3
	}
	faults, allowed := map[world.Kind]int{}, map[world.Kind]int64{}
	var ids int64
	for seed := uint64(1); seed <= seeds; seed++ {
		r := sim.Run(seed, sim.Options{Only: "snowflake"})
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		if r.IDs < sim.LeastIDs && !r.Barren || r.Struck < 10 || r.Nodes < 3 {
			t.Errorf("seed %d: %d IDs, %d faults, %d nodes", seed, r.IDs, r.Struck, r.Nodes)
		}
		for k, n := range r.Faults {
			faults[k] += n
		}
		for k, n := range r.Allowed {
			allowed[k] += n
		}
		ids += r.IDs
	}
	for _, k := range sim.Kinds("snowflake") {
		if faults[k] == 0 && seeds >= 60 {
			t.Errorf("%q never took effect in %d seeds", k, seeds)
		}
	}
	// What cannot be noticed must show, or the documents promise too little. Two nodes with
	// one number do at once; the others need luck.
	kinds := []world.Kind{sim.SharedNumber}
	if long.Asked() {
		kinds = append(kinds, world.FileOlder, world.MachineCloned, world.RegistryWiped, world.RegistryOld, world.CommitsLost)
	}
	for _, k := range kinds {
		if allowed[k] == 0 && seeds >= 60 {
			t.Errorf("no ID repeated by %q in %d seeds", k, seeds)
		}
	}
	t.Logf("%d seeds, %d IDs", seeds, ids)
}
