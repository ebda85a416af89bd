package segment_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// TestRepairWhereNobodyKnows: another program has spoilt max_id, and an operator does what the alarm
// says. The node that took the ranges was stopped cleanly, and its data directory is gone, as in a
// container without a volume. Nobody knows the numbers, and the repair does not begin at 1.
func TestRepairWhereNobodyKnows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ids := newStore(row(10)), newLedger()
		a := node(t, s, nil, segment.Config{NodeID: "a", FixedStep: true})
		ids.add(t, "a", drain(t, a, "order", 25)...)
		if err := a.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.Put(segment.Row{Tag: "order", MaxID: -1, Step: 10})
		b := node(t, s, nil, segment.Config{NodeID: "b", FixedStep: true})
		time.Sleep(5 * time.Second)
		_, err := b.Repair(t.Context(), "order", 0)
		wantErr(t, err, leaf.ErrConflict)
		if !strings.Contains(err.Error(), "--above") {
			t.Errorf("%v names no way out", err)
		}
		if _, err := b.Repair(t.Context(), "order", 1000); err != nil {
			t.Fatal(err)
		}
		ids.add(t, "b", drain(t, b, "order", 25)...)
	})
}
