package segment_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// TestSecondLossAfterARepairUnheard: a node cannot read the board while the others repair a
// first loss without it. The table of rows is restored a second time, the board is not. The
// node is offered less than it holds and latches at an end below the repair. Then it reads
// of that repair, which is older than what it saw. The refused statement has moved the row
// past the repair, so a node that is released now issues what others issued.
func TestSecondLossAfterARepairUnheard(t *testing.T) {
	for _, c := range []struct {
		name    string
		restart bool // of the node that latched, before it can read the board
	}{{"", false}, {"restarted", true}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, d, ids := newStore(row(10)), newDisk(), newLedger()
				mute := &board{store: s}
				cfg := segment.Config{NodeID: "b", FixedStep: true, MaxWait: time.Second}
				a := node(t, s, nil, segment.Config{NodeID: "a", FixedStep: true, MaxWait: time.Second})
				b := node(t, mute, d, cfg)
				ids.add(t, "a", drain(t, a, "order", 5)...)
				ids.add(t, "b", drain(t, b, "order", 5)...)
				synctest.Wait()
				high := b.Mark("order").High
				mute.change(func(b *board) { b.onNotices = func() error { return errDown } })
				restored(s, 1)
				useUntil(t, a, ids, leaf.ErrRegress)
				if _, err := a.Repair(t.Context(), "order", 99); err != nil {
					t.Fatal(err)
				}
				ids.add(t, "a after the repair", drain(t, a, "order", 300)...)
				synctest.Wait() // a loads nothing more
				s.Put(segment.Row{Tag: "order", MaxID: 1, Step: 200})
				useUntil(t, b, ids, leaf.ErrRegress)
				if m := b.Mark("order"); m.High != high || !m.Latched {
					t.Fatalf("mark %+v: the test no longer tests what it says", m)
				}
				if c.restart {
					closeNode(t, b)
					b = node(t, s, d, cfg)
				}
				mute.change(func(b *board) { b.onNotices = nil })
				time.Sleep(5 * time.Second)
				for name, n := range map[string]*segment.Allocator{"a": a, "b": b} {
					if id, err := n.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrRegress) {
						t.Errorf("node %s: ID %d, %v; mark %+v", name, id, err, n.Mark("order"))
					}
				}
				if _, err := b.Repair(t.Context(), "order", 0); err != nil {
					t.Fatal(err)
				}
				ids.add(t, "a at the end", drain(t, a, "order", 300)...)
				ids.add(t, "b at the end", drain(t, b, "order", 300)...)
			})
		})
	}
}

// TestSecondLossAtTheEndOfARepair: after a repair the table is restored again. What the node
// holds ends where that repair moved the row, so its second number is not above the
// repair's. It counts as a new loss: all nodes stop, and one repair releases all.
func TestSecondLossAtTheEndOfARepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		n := three(t, s)
		drain(t, n[0], "order", 15)
		synctest.Wait()
		for i := range 3 {
			// The refused range ends above the last repair, so the others refuse nothing.
			s.Put(segment.Row{Tag: "order", MaxID: 1, Step: 1000 << i})
			_, _ = n[i].NextN(t.Context(), "order", 30)
			time.Sleep(5 * time.Second)
			for k, a := range n {
				if id, err := a.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrRegress) {
					t.Fatalf("loss %d, node %d: ID %d, %v", i, k, id, err)
				}
			}
			if end := n[i].Mark("order").High; i > 0 {
				if repaired := s.repaired(t, "order"); end != repaired {
					t.Fatalf("loss %d: the node ends at %d, the last repair moved the row to %d: the test no longer tests what it says", i, end, repaired)
				}
			}
			if _, err := n[(i+1)%3].Repair(t.Context(), "order", 0); err != nil {
				t.Fatal(err)
			}
			for k, a := range n {
				if m := a.Mark("order"); m.Latched {
					t.Errorf("after repair %d: node %d has mark %+v", i, k, m)
				}
			}
		}
	})
}

// TestRangeRefusedDuringARepair: the node that carries out a repair is itself offered less
// between its question and the end. That latch is not ended by this round of the repair.
func TestRangeRefusedDuringARepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &board{store: newStore(row(10))}
		a := node(t, b, nil, segment.Config{NodeID: "a", FixedStep: true, MaxWait: time.Second})
		drain(t, a, "order", 5)
		synctest.Wait()
		moves := 0
		b.onPost = func(n segment.Notice) bool {
			if n.Repaired > 0 {
				if moves++; moves == 1 {
					b.Put(segment.Row{Tag: "order", MaxID: 1, Step: 200})
					useUntil(t, a, newLedger(), leaf.ErrRegress)
				}
			}
			return false
		}
		maxID, err := a.Repair(t.Context(), "order", 0)
		if err != nil || moves != 2 || maxID <= 201 {
			t.Errorf("Repair = %d, %v after %d rounds; want two, and more than 201", maxID, err, moves)
		}
		if id := next(t, a, "order"); id <= 201 {
			t.Errorf("ID %d", id)
		}
	})
}

// TestRepairWhileTheNodeThatLatchedIsDown: a node that latched and told the others crashes
// at once. They repair the tag without it. It serves when it starts again.
func TestRepairWhileTheNodeThatLatchedIsDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := newStore(row(10)), newDisk()
		cfg := segment.Config{NodeID: "b", FixedStep: true, MaxWait: time.Second}
		a := node(t, s, nil, segment.Config{NodeID: "a", FixedStep: true, MaxWait: time.Second})
		b := node(t, s, d, cfg)
		drain(t, b, "order", 15)
		synctest.Wait()
		restored(s, 1)
		useUntil(t, b, newLedger(), leaf.ErrRegress)
		synctest.Wait()
		crashed := d.copy()
		closeNode(t, b)
		if _, err := a.Repair(t.Context(), "order", 500); err != nil {
			t.Fatal(err)
		}
		b = node(t, s, crashed, cfg)
		if id := next(t, b, "order"); id <= 500 {
			t.Errorf("ID %d after a repair above 500", id)
		}
	})
}
