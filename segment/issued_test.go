package segment_test

import (
	"testing"
	"testing/synctest"

	"github.com/leaf-idgen/leaf/segment"
)

// TestIssued: each ID is counted once, from the first range to the last, alone or in a batch.
func TestIssued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := node(t, newStore(row(10), segment.Row{Tag: "other", MaxID: 1, Step: 7}), nil, segment.Config{FixedStep: true})
		var want int64
		for i := range int64(40) {
			if _, err := a.Next(t.Context(), "order"); err != nil {
				t.Fatal(err)
			}
			if _, err := a.NextN(t.Context(), "other", int(i+1)); err != nil {
				t.Fatal(err)
			}
			want += 1 + i + 1
			if got := a.Issued(); got != want {
				t.Fatalf("after round %d: %d IDs issued, want %d", i, got, want)
			}
		}
		synctest.Wait()
		for _, st := range a.Snapshot() {
			if st.Stock <= 0 || st.Issued <= 0 {
				t.Errorf("%+v", st)
			}
		}
	})
}
