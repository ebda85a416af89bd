package segment_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
)

// TestRepairBesideAReturn: a node loads one ID after it has answered a repair, which takes
// the row to where the repair moves it, and stops before it reads of the repair's end. What
// it returns takes the row below the repair again. The tag is not latched a second time.
func TestRepairBesideAReturn(t *testing.T) {
	for name, f := range map[string]*memory.Fence{"": nil, "under a cluster fence": memory.NewFence()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg := func(node string) segment.Config {
					if f != nil {
						return fenced(node, sharing(f), nil)
					}
					return segment.Config{NodeID: node, FixedStep: true}
				}
				b := &board{store: newStore(row(10))}
				a, stops := node(t, b, nil, cfg("a")), node(t, b.store, nil, cfg("stops"))
				drain(t, a, "order", 5)
				synctest.Wait()
				drain(t, stops, "order", 9)
				synctest.Wait()
				at := b.maxID(t, "order")
				b.onRaise = func() {
					b.change(func(b *board) { b.onRaise = nil })
					if err := b.Update(t.Context(), "order", segment.Change{Step: new(int64(1))}); err != nil {
						t.Error(err)
					}
					drain(t, stops, "order", 3) // of the last range; asks for the next
					synctest.Wait()
				}
				b.onPost = func(n segment.Notice) bool {
					if n.Repaired > 0 {
						b.change(func(b *board) { b.onPost = nil })
						closeNode(t, stops)
						if now := b.maxID(t, "order"); now > at {
							t.Fatalf("row at %d, was at %d: the test no longer tests what it says", now, at)
						}
					}
					return false
				}
				maxID, err := a.Repair(t.Context(), "order", 0)
				if err != nil {
					t.Fatal(err)
				}
				if row := b.maxID(t, "order"); maxID <= at || row < maxID {
					t.Errorf("Repair = %d, row at %d; numbers up to %d were in use", maxID, row, at)
				}
				if id := drain(t, a, "order", 50)[49]; id < maxID {
					t.Errorf("ID %d after a repair to %d", id, maxID)
				}
			})
		})
	}
}

// TestRepairMeetsAReturnThatHangs: the statement by which a node that stops gives numbers
// back does not return. The node is heard meanwhile, and the repair ends above all that it
// issued.
func TestRepairMeetsAReturnThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		a := node(t, s, nil, segment.Config{NodeID: "a", FixedStep: true})
		b := node(t, s, nil, segment.Config{NodeID: "b", FixedStep: true, LoadTimeout: 40 * time.Second})
		drain(t, a, "order", 5)
		synctest.Wait()
		last := drain(t, b, "order", 195)[194]
		synctest.Wait()
		entered, release := make(chan struct{}), make(chan struct{})
		s.set(func(s *store) {
			s.onReturn = func(_ context.Context, _ string, do func() error) error {
				close(entered)
				<-release
				return do()
			}
		})
		closed := make(chan struct{})
		go func() { closeNode(t, b); close(closed) }()
		<-entered
		s.Put(segment.Row{Tag: "order", MaxID: 51, Step: 10}) // lost commits
		maxID, err := a.Repair(t.Context(), "order", 0)
		if err != nil || maxID <= last {
			t.Errorf("Repair = %d, %v; b issued up to %d", maxID, err, last)
		}
		close(release)
		<-closed
		if row := s.maxID(t, "order"); row < maxID {
			t.Errorf("row at %d after a repair to %d", row, maxID)
		}
	})
}
