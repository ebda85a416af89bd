package segment_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
)

// lateReturns is a store that loses its answers to returns of unused IDs: the statements
// reach the database when arrive is called.
type lateReturns struct {
	*board
	mu   sync.Mutex
	sent []func() error
}

func (s *lateReturns) ReturnUnused(_ context.Context, tag string, hi, lo int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, func() error { return s.Store.ReturnUnused(context.Background(), tag, hi, lo) })
	return errDown
}

// arrive lets the statements reach the database, of which there must be one.
func (s *lateReturns) arrive(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.sent) != 1 {
		t.Fatalf("%d returns were sent, want 1", len(s.sent))
	}
	if err := s.sent[0](); err != nil && !errors.Is(err, leaf.ErrConflict) {
		t.Fatal(err)
	}
}

// TestReturnArrivesAfterARepair: a node loads a range while a repair runs, and returns it
// unused. The statement reaches the database when the repair has ended. It must not lower
// the row below the repair: every node would take that for a regress.
func TestReturnArrivesAfterARepair(t *testing.T) {
	for _, tt := range []struct {
		name  string
		above int64
	}{
		{"the range ends above the repair's number", 0},
		{"it ends at the number to which the repair moves the row", 30},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, ids := newStore(row(10)), newLedger()
				b := &board{store: s}
				late := &lateReturns{board: b}
				cfg := func(id string) segment.Config { return segment.Config{NodeID: id, FixedStep: true} }
				a, c := node(t, b, nil, cfg("a")), node(t, b, nil, cfg("c"))
				stops := node(t, late, nil, cfg("stops"))
				ids.add(t, "a", drain(t, a, "order", 1)...)
				ids.add(t, "stops", drain(t, stops, "order", 1)...)
				synctest.Wait()
				var once sync.Once
				b.change(func(b *board) {
					b.onRaise = func() {
						once.Do(func() { // the repair has looked at the row
							ids.add(t, "stops", drain(t, stops, "order", 1)...) // and loads the next range
							synctest.Wait()
							closeNode(t, stops)
						})
					}
				})
				first, err := a.Repair(t.Context(), "order", tt.above)
				if err != nil {
					t.Fatal(err)
				}
				late.arrive(t)
				if now := s.maxID(t, "order"); now < first {
					t.Errorf("a late return lowered the row to %d, below the repair to %d", now, first)
				}
				ids.add(t, "a", drain(t, a, "order", 50)...)
				ids.add(t, "c", drain(t, c, "order", 50)...)
			})
		})
	}
}

// TestReturnArrivesAfterAnotherReturn: a statement that returns unused IDs is still on its way
// when its node has left. Another node loads the next range, uses nothing of it, and returns
// it. The row must not come back to the end that the late statement expects: it would lower
// the row below the cluster fence, and every node would take that for a regress.
func TestReturnArrivesAfterAnotherReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, d, ids := newStore(row(10)), memory.NewFence(), newDisk(), newLedger()
		late := &lateReturns{board: &board{store: s}}
		a := node(t, s, d, fenced("a", f, nil))
		ids.add(t, "a", next(t, a, "order"))
		closeNode(t, a)
		stops := node(t, late, nil, fenced("stops", f, nil))
		ids.add(t, "stops", next(t, stops, "order"))
		closeNode(t, stops)
		end := s.maxID(t, "order")
		a = node(t, s, d, fenced("a", f, nil)) // loads a range of the tag, which is a recent one
		synctest.Wait()
		if now := s.maxID(t, "order"); now != end+10 {
			t.Fatalf("the row is at %d, want a range above %d", now, end)
		}
		closeNode(t, a)
		late.arrive(t)
		c := node(t, s, nil, fenced("c", f, nil))
		ids.add(t, "c", drain(t, c, "order", 50)...)
	})
}

// TestReturnIsToldToARepair: the database loses commits, and a node returns unused IDs from
// before the loss. Whether the return reaches the database it cannot know, and it says so
// while it stops, and when it leaves: the repair moves the row above the returned IDs, so
// that the statement never meets a row that has come to the same end again.
func TestReturnIsToldToARepair(t *testing.T) {
	for _, c := range []struct {
		name  string
		hangs bool // until the repair has asked; else the node has left before
	}{{"while the node stops", true}, {"after the node left", false}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, ids := newStore(row(7)), newLedger()
				late := &lateReturns{board: &board{store: s}}
				var stops segment.Store = late
				if c.hangs {
					stops = hangingReturns{late}
				}
				cfg := func(id string) segment.Config { return segment.Config{NodeID: id, FixedStep: true} }
				a, b := node(t, late.board, nil, cfg("a")), node(t, late.board, nil, cfg("b"))
				stopped := node(t, stops, nil, segment.Config{NodeID: "stops", FixedStep: true, LoadTimeout: 30 * time.Second})
				ids.add(t, "stops", drain(t, stopped, "order", 2)...) // [1, 8), and [8, 15) is the next one
				synctest.Wait()
				restored(s, 1)
				closed := make(chan struct{})
				go func() { defer close(closed); closeNode(t, stopped) }()
				if !c.hangs {
					<-closed
				}
				synctest.Wait()
				first, err := a.Repair(t.Context(), "order", 0)
				if err != nil {
					t.Fatal(err)
				}
				if first <= 15 {
					t.Errorf("the repair moved the row to %d; a return from 15 is on its way", first)
				}
				ids.add(t, "b", drain(t, b, "order", 7)...)
				late.arrive(t)
				ids.add(t, "b", drain(t, b, "order", 50)...)
				ids.add(t, "a", drain(t, a, "order", 50)...)
				<-closed
			})
		})
	}
}

// hangingReturns is lateReturns that answers late, too.
type hangingReturns struct{ *lateReturns }

func (s hangingReturns) ReturnUnused(ctx context.Context, tag string, hi, lo int64) error {
	err := s.lateReturns.ReturnUnused(ctx, tag, hi, lo)
	time.Sleep(20 * time.Second)
	return err
}
