package sim_test

import (
	"context"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/sim"
	"github.com/leaf-idgen/leaf/internal/test/long"
)

// shrunk says that few seeds are enough: the race detector makes a seed take ten times as long
// and finds nothing more, because a seed runs one goroutine at a time. make test runs the
// seeds without it, too.
func shrunk() bool { return long.Raced && !long.Asked() }

// TestCorpus: what failed once does not fail again.
func TestCorpus(t *testing.T) {
	known, err := sim.Corpus()
	if err != nil || len(known) == 0 {
		t.Fatalf("%d seeds, %v", len(known), err)
	}
	if shrunk() {
		known = known[:1]
	}
	for _, k := range known {
		c := sim.Campaign{First: k.Seed, Seeds: 1, Only: k.Only, Patience: 5 * time.Minute}
		if err := sim.RunSeeds(context.Background(), c).Check(); err != nil {
			t.Errorf("%v\nit failed before: %s", err, k.Story)
		}
	}
}

// TestFreshSeeds: seeds that were never run before, for 5 s, or a minute with LEAF_LONG. A
// failure is replayed by the seed that it names; put it into testdata/seeds.txt once it is
// understood.
func TestFreshSeeds(t *testing.T) {
	span, seeds := 5*time.Second, uint64(1<<20)
	switch {
	case testing.Short():
		span, seeds = time.Minute, 20
	case long.Asked():
		span = time.Minute
	case long.Raced:
		span, seeds = time.Minute, 2
	}
	ctx, cancel := context.WithTimeout(context.Background(), span)
	defer cancel()
	first := uint64(time.Now().UnixNano()) >> 8
	if testing.Short() {
		first = 1 // make check is the same every time
	}
	t.Logf("seeds from %d on", first)
	r := sim.RunSeeds(ctx, sim.Campaign{First: first, Seeds: seeds, Patience: 5 * time.Minute})
	t.Logf("%d seeds, %d IDs, %d kinds of faults", r.Seeds, r.IDs, len(r.Faults))
	if r.Seeds < 2 {
		t.Errorf("only %d seeds ran", r.Seeds)
	}
	if err := r.Check(); err != nil {
		t.Errorf("%v\nsee it: go run ./internal/test/cmd/sim -seed N -log", err)
	}
}

// TestEqualSeedsMakeEqualRuns: two runs of a seed have equal hashes.
func TestEqualSeedsMakeEqualRuns(t *testing.T) {
	seeds := uint64(10)
	switch {
	case testing.Short():
		seeds = 5
	case long.Asked():
		seeds = 1000
	case long.Raced:
		seeds = 2
	}
	r := sim.RunSeeds(context.Background(), sim.Campaign{First: 1, Seeds: seeds, Twice: true, Patience: 5 * time.Minute})
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	if r.Seeds != seeds {
		t.Errorf("%d seeds ran, want %d", r.Seeds, seeds)
	}
}

// TestStrict: the scheduler misses no wake-up, and a look at that changes nothing.
func TestStrict(t *testing.T) {
	seeds := uint64(8)
	switch {
	case long.Asked():
		seeds = 20
	case long.Raced:
		seeds = 1
	case testing.Short():
		seeds = 3
	}
	for seed := uint64(1); seed <= seeds; seed++ {
		a, b := sim.Run(seed, sim.Options{Strict: true}), sim.Run(seed, sim.Options{})
		if a.Hash != b.Hash || a.Err != nil {
			t.Errorf("seed %d: hash %x, without checks %x, %v", seed, a.Hash, b.Hash, a.Err)
		}
	}
}
