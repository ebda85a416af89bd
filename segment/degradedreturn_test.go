package segment_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
)

// takesApart lets the database lose commits, back to row, while a new node a works without the cluster
// fence and takes one ID. Then the node merges its marks.
func takesApart(t *testing.T, s *store, f *memory.Fence, row segment.Row, ids *ledger) *segment.Allocator {
	t.Helper()
	mine := sharing(f)
	mine.breakDown()
	a := node(t, s, nil, degraded(mine, nil))
	s.Put(row)
	ids.add(t, "a", next(t, a, "order"))
	mine.heal()
	time.Sleep(time.Minute)
	return a
}

// returnsLast lets a node take the range last, which touches the one before, and stop. It may return
// that range without its first ID, but not what lies before.
func returnsLast(t *testing.T, s *store, f *memory.Fence, a *segment.Allocator, name string, last leaf.Range, ids *ledger) {
	t.Helper()
	ids.add(t, name, drain(t, a, "order", 11)...)
	time.Sleep(time.Second)
	if end := s.maxID(t, "order"); end != last.Hi {
		t.Fatalf("max_id is %d, want %d: the test no longer tests what it says", end, last.Hi)
	}
	closeNode(t, a)
	if end, row := sharing(f).end(t, "order"), s.maxID(t, "order"); end != last.Lo+1 || row != last.Lo+1 {
		t.Errorf("the cluster fence holds %d and max_id is %d, want %d: the range %v without its first ID", end, row, last.Lo+1, last)
	}
	ids.issueOn(t, s, f, 100)
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
		takesApart(t, s, f, segment.Row{Tag: "order", MaxID: 51, Step: 50}, ids) // takes [51,101)
		returnsLast(t, s, f, tail, "tail", leaf.Range{Lo: 101, Hi: 151}, ids)
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
		id := next(t, c, "order")
		if id != 101 {
			t.Fatalf("node c got %d, want 101", id)
		}
		ids.add(t, "c", id)
		a := takesApart(t, s, f, segment.Row{Tag: "order", MaxID: 51, Step: 100}, ids) // takes [51,151)
		returnsLast(t, s, f, a, "a", leaf.Range{Lo: 151, Hi: 251}, ids)
	})
}
