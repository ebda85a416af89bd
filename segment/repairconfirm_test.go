package segment_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// TestRepairWaitsForANodeThatEntersAgain: the list of nodes was lost with the commits. A
// node that answers is on it from then on, so the repair ends only when the node has heeded
// it.
func TestRepairWaitsForANodeThatEntersAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		n := three(t, s)
		for _, a := range n {
			drain(t, a, "order", 2)
		}
		time.Sleep(10 * time.Second)
		for _, name := range []string{"a", "b", "c"} {
			if err := s.Leave(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := n[0].Repair(t.Context(), "order", 1000); err != nil {
			t.Fatal(err)
		}
		for i, a := range n {
			if id := next(t, a, "order"); id <= 1000 {
				t.Errorf("node %d issues %d after a repair above 1000", i, id)
			}
		}
	})
}

// TestRangeRefusedElsewhereDuringARepair: another node is offered less after it has answered,
// and reads of the repair in its first look after that. It stays latched at the first end of
// the repair, which then begins anew.
func TestRangeRefusedElsewhereDuringARepair(t *testing.T) {
	for range 4 { // in one of twenty runs the other node has looked before
		synctest.Test(t, rangeRefusedDuringARepair)
	}
}

func rangeRefusedDuringARepair(t *testing.T) {
	b := &board{store: newStore(row(10))}
	a := node(t, b, nil, segment.Config{NodeID: "a", FixedStep: true, MaxWait: time.Second})
	slow := &board{store: b.store}
	other := node(t, slow, nil, segment.Config{NodeID: "b", FixedStep: true, MaxWait: time.Second})
	drain(t, a, "order", 5)
	drain(t, other, "order", 5)
	synctest.Wait()
	rounds := 0
	b.onPost = func(n segment.Notice) bool {
		if n.Repaired == 0 {
			return false
		}
		if rounds++; rounds == 1 {
			slow.change(func(b *board) { b.onNotices = func() error { return errDown } })
			time.AfterFunc(time.Second, func() { slow.change(func(b *board) { b.onNotices = nil }) })
			b.Put(segment.Row{Tag: "order", MaxID: 1, Step: 200})
			useUntil(t, other, newLedger(), leaf.ErrRegress)
		}
		return false
	}
	if _, err := a.Repair(t.Context(), "order", 0); err != nil || rounds < 2 {
		t.Errorf("%v after %d rounds, want two", err, rounds)
	}
	for name, n := range map[string]*segment.Allocator{"a": a, "b": other} {
		if m := n.Mark("order"); m.Latched {
			t.Errorf("node %s has mark %+v after the repair", name, m)
		}
	}
}

// TestRebuiltFenceStopsNoOtherNode: that a node lost its memory is no evidence that the
// database went back.
func TestRebuiltFenceStopsNoOtherNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := newStore(row(10)), newDisk()
		cfg := segment.Config{NodeID: "b", FixedStep: true, MaxWait: time.Second}
		a := node(t, s, nil, segment.Config{NodeID: "a", FixedStep: true, MaxWait: time.Second})
		b := node(t, s, d, cfg)
		drain(t, b, "order", 5)
		closeNode(t, b)
		d.set(func(d *disk) { delete(d.files, "fence") })
		if err := fence.Rebuild(d, "b", map[string]int64{"order": s.maxID(t, "order")}); err != nil {
			t.Fatal(err)
		}
		b = node(t, s, d, cfg)
		time.Sleep(5 * time.Second)
		if m := b.Mark("order"); !m.Latched {
			t.Errorf("mark %+v of the node that lost its fence", m)
		}
		drain(t, a, "order", 50)
	})
}
