package sim_test

import (
	"slices"
	"testing"

	"github.com/leaf-idgen/leaf/internal/sim"
)

func TestReadCorpus(t *testing.T) {
	got, err := sim.ReadCorpus("# comment\n\nsegment 17 ID twice; abc123\n  any  3  x y\n")
	want := []sim.Known{{Only: "segment", Seed: 17, Story: "ID twice; abc123"}, {Seed: 3, Story: "x y"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"17 segment x", "segment x y", "segment 17", "both 17 x"} {
		if got, err := sim.ReadCorpus(bad); err == nil {
			t.Errorf("accepted %q as %v", bad, got)
		}
	}
}
