package segment_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// TestSetStep: another limit of the dynamic step counts from the next load on.
func TestSetStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := node(t, newStore(row(100)), newDisk(), segment.Config{})
		longest := func(n int) (length int64) {
			drain(t, a, "order", n)
			synctest.Wait()
			return a.Snapshot()[0].Length
		}
		if got := longest(1000); got <= 200 {
			t.Fatalf("the step has not grown: %d", got)
		}
		if err := a.SetStep(200, false); err != nil {
			t.Fatal(err)
		}
		if got := longest(5000); got != 200 {
			t.Errorf("ranges of %d IDs, want at most 200", got)
		}
		if err := a.SetStep(1_000_000, true); err != nil {
			t.Fatal(err)
		}
		if got := longest(1000); got != 100 {
			t.Errorf("ranges of %d IDs, want the row's own 100", got)
		}
		for _, bad := range []int64{0, segment.MaxStep + 1} {
			if err := a.SetStep(bad, false); !errors.Is(err, leaf.ErrBadRequest) {
				t.Errorf("%d: %v", bad, err)
			}
		}
	})
}
