package owner_test

import (
	"fmt"
	"testing"

	"github.com/leaf-idgen/leaf/internal/owner"
)

// best returns who has a slot.
func best(slot int, weights map[string]int64) (best string) {
	var top float64
	for node, w := range weights {
		if bid := owner.Score(node, w, slot); bid > top {
			top, best = bid, node
		}
	}
	return best
}

// Nodes share slots by weight, and one that joins takes slots and moves none between others.
func TestRendezvous(t *testing.T) {
	two := map[string]int64{"10.0.0.1:7": 100, "10.0.0.2:7": 300}
	three := map[string]int64{"10.0.0.1:7": 100, "10.0.0.2:7": 300, "10.0.0.3:7": 400}
	const n = 4096
	has := map[string]int{}
	for slot := range n {
		before, after := best(slot, two), best(slot, three)
		if after != before && after != "10.0.0.3:7" {
			t.Fatalf("slot %d moves from %s to %s, because a third node joins", slot, before, after)
		}
		has[after]++
	}
	for node, w := range three {
		if share, want := float64(has[node])/n, float64(w)/800; share < want*0.9 || share > want*1.1 {
			t.Errorf("%s with the weight %d of 800 has %.3f of the slots", node, w, share)
		}
	}
}

// The slot of a tag is the same in every version: nodes of two versions must agree.
func TestOf(t *testing.T) {
	has := make([]int, 64)
	for i := range 64_000 {
		has[owner.Of(fmt.Sprintf("tag-%d", i), 64)]++
	}
	for slot, n := range has {
		if n < 850 || n > 1150 {
			t.Errorf("slot %d has %d tags of 64,000", slot, n)
		}
	}
	for tag, want := range map[string]int{"order": 10, "user": 7} {
		if got := owner.Of(tag, 64); got != want {
			t.Errorf("%q is in slot %d, want %d", tag, got, want)
		}
	}
}
