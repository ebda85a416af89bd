package segment_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
)

// issueOn lets a new node issue n IDs, or fewer if it refuses the row.
func (l *ledger) issueOn(t *testing.T, s segment.Store, f *memory.Fence, n int) {
	t.Helper()
	fresh := node(t, s, nil, fenced("fresh", sharing(f), nil))
	for range n {
		id, err := fresh.Next(t.Context(), "order")
		if err != nil {
			return
		}
		l.add(t, "fresh", id)
	}
}

// TestTailBesideADegradedRange: the database loses commits while node a works without the cluster
// fence, so a's range lies inside the unused tail of another node's range. After a has merged its
// marks, the other node takes a range that touches the first one. It may return the second range,
// but not what lies before it.
func TestTailBesideADegradedRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, ids := newStore(row(100)), memory.NewFence(), newLedger()
		tail := node(t, s, nil, fenced("tail", sharing(f), nil))
		ids.add(t, "tail", next(t, tail, "order"))

		mine := sharing(f)
		mine.breakDown()
		a := node(t, s, nil, degraded(mine, nil))
		s.Put(segment.Row{Tag: "order", MaxID: 51, Step: 50})
		ids.add(t, "a", next(t, a, "order")) // of [51,101)
		mine.heal()
		time.Sleep(time.Minute)
		ids.add(t, "tail", drain(t, tail, "order", 11)...) // and takes [101,151)
		time.Sleep(time.Second)
		if end := s.maxID(t, "order"); end != 151 {
			t.Fatalf("max_id is %d, want 151: the test no longer tests what it says", end)
		}
		closeNode(t, tail)
		if end, row := mine.end(t, "order"), s.maxID(t, "order"); end != 102 || row != 102 {
			t.Errorf("the cluster fence holds %d and max_id is %d, want 102: the second range without its first ID", end, row)
		}
		ids.issueOn(t, s, f, 100)
	})
}

// TestDegradedRangeIsNotReturned: the database loses commits while node a works without the cluster
// fence, so a's range lies over one of another node. Later a takes a range that touches it, under
// the cluster fence. It may return the second range, but not what is left of the first.
func TestDegradedRangeIsNotReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, ids := newStore(row(50)), memory.NewFence(), newLedger()
		b := node(t, s, nil, fenced("b", sharing(f), nil))
		ids.add(t, "b", drain(t, b, "order", 10)...) // of [1,51), and has [51,101) in stock
		time.Sleep(time.Second)
		c := node(t, s, nil, fenced("c", sharing(f), nil))
		if id := next(t, c, "order"); id != 101 {
			t.Fatalf("node c got %d, want 101", id)
		} else {
			ids.add(t, "c", id)
		}

		mine := sharing(f)
		mine.breakDown()
		a := node(t, s, nil, degraded(mine, nil))
		s.Put(segment.Row{Tag: "order", MaxID: 51, Step: 100})
		ids.add(t, "a", next(t, a, "order")) // of [51,151)
		mine.heal()
		time.Sleep(time.Minute)
		ids.add(t, "a", drain(t, a, "order", 11)...) // and takes [151,251)
		time.Sleep(time.Second)
		if end := s.maxID(t, "order"); end != 251 {
			t.Fatalf("max_id is %d, want 251: the test no longer tests what it says", end)
		}
		closeNode(t, a)
		if end, row := mine.end(t, "order"), s.maxID(t, "order"); end != 152 || row != 152 {
			t.Errorf("the cluster fence holds %d and max_id is %d, want 152: the second range without its first ID", end, row)
		}
		ids.issueOn(t, s, f, 100)
	})
}
