package sim_test

import (
	"testing"

	"github.com/leaf-idgen/leaf/internal/sim"
)

// TestExposureOfANode: what a node holds beside the cluster fence may repeat until the node
// has merged its fences, and only at a node that was handed it in that time.
func TestExposureOfANode(t *testing.T) {
	const lost, merged = 10, 20 // moments
	for _, tt := range []struct {
		name           string
		holder, other  int // when each was handed the ID
		merges, covers bool
	}{
		{"both before the loss", 5, 6, true, false},
		{"the other one after the loss", 5, 15, true, true},
		{"the other one after the merge", 5, 25, true, false},
		{"the other one later, without a merge", 5, 25, false, true},
		{"both after the loss", 12, 15, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			end := 0
			if tt.merges {
				end = merged
			}
			if got := sim.Exposed(lost, end, tt.holder, tt.other); got != tt.covers {
				t.Errorf("the repeat is allowed: %v, want %v", got, tt.covers)
			}
		})
	}
}
