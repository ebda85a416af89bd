package segment_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// three starts nodes a, b and c on one store, without a cluster fence.
func three(t *testing.T, s segment.Store) (all [3]*segment.Allocator) {
	t.Helper()
	for i := range all {
		all[i] = node(t, s, nil, segment.Config{NodeID: string(rune('a' + i)), FixedStep: true, MaxWait: time.Second})
	}
	return all
}

// restored makes the row what it was at an earlier time.
func restored(s *store, maxID int64) { s.Put(segment.Row{Tag: "order", MaxID: maxID, Step: 10}) }

// TestRegressStopsEveryNode: one node sees that the database lost commits. The others,
// which saw nothing, one of which took a range that was issued before, stop within
// seconds and say why. One repair on any node brings all back, above every number.
func TestRegressStopsEveryNode(t *testing.T) {
	for who, name := range []string{"the node that saw it", "a node that hears of it", "the node with the highest numbers"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, ids := newStore(row(10)), newLedger()
				n := three(t, s)
				ids.add(t, "b", drain(t, n[1], "order", 1)...)   // [1, 11), and a next one
				ids.add(t, "a", drain(t, n[0], "order", 100)...) // up to 120 and above
				ids.add(t, "c", drain(t, n[2], "order", 1)...)
				synctest.Wait()
				used := s.maxID(t, "order")
				restored(s, 31)
				_, _ = n[1].NextN(t.Context(), "order", 20) // b uses up its stock, and gets what a issued
				restored(s, 31)
				useUntil(t, n[0], ids, leaf.ErrRegress)
				time.Sleep(5 * time.Second)
				for i, a := range n {
					if m := a.Mark("order"); !m.Latched || m.High < used-20 {
						t.Errorf("node %d: mark %+v, want it latched", i, m)
					}
					if id, err := a.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrRegress) {
						t.Errorf("node %d issues %d, %v", i, id, err)
					}
				}
				maxID, err := n[who].Repair(t.Context(), "order", 0)
				if err != nil || maxID <= used {
					t.Fatalf("Repair = %d, %v; want more than %d", maxID, err, used)
				}
				for i, a := range n {
					got := drain(t, a, "order", 50)
					ids.add(t, fmt.Sprint("after ", i), got...)
					if got[0] <= used {
						t.Errorf("node %d issues %d after the repair, numbers up to %d were in use", i, got[0], used)
					}
				}
			})
		})
	}
}

// TestRepairDropsStock: ranges in memory below the repair are dropped on nodes that did
// not latch, also one that is under way.
func TestRepairDropsStock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		n := three(t, s)
		for _, a := range n {
			drain(t, a, "order", 2)
		}
		synctest.Wait()
		stuck, release := stuckOnce(s, nil)
		drain(t, n[1], "order", 18) // asks for a range
		<-stuck
		maxID, err := n[0].Repair(t.Context(), "order", 1000)
		if err != nil || maxID != 1001 {
			t.Fatalf("Repair = %d, %v; want 1001", maxID, err)
		}
		if below := s.repaired(t, "order"); below != 1001 {
			t.Errorf("the nodes are told to issue nothing below %d, want 1001", below)
		}
		close(release)
		synctest.Wait()
		for i, a := range n {
			if id := next(t, a, "order"); id <= 1000 {
				t.Errorf("node %d issues %d after a repair above 1000", i, id)
			}
		}
	})
}

// TestRepairDropsWhatABatchHolds: a batch that has some of its IDs and waits for others gives none from below a repair, as
// leaf import makes one on nodes that did not latch.
func TestRepairDropsWhatABatchHolds(t *testing.T) {
	for name, count := range map[string]int{"many more": 100, "one more": 30} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(row(10))
				a := node(t, s, nil, segment.Config{NodeID: "a"})
				b := node(t, s, nil, segment.Config{NodeID: "b", FixedStep: true, LoadTimeout: time.Minute})
				nextOf(t, b)
				synctest.Wait()
				stuck, release, loads := make(chan struct{}), make(chan struct{}), 0
				s.set(func(s *store) {
					s.onReserve = func(_ context.Context, _ segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
						if loads++; loads == 3 {
							close(stuck)
							<-release
						}
						return do()
					}
				})
				batch := make(chan []leaf.Range)
				go func() {
					got, err := b.NextN(t.Context(), "order", count)
					if err != nil {
						t.Error(err)
					}
					batch <- got
				}()
				<-stuck
				if lost := b.Status().Lost; lost != 0 {
					t.Fatalf("%d IDs are lost: the test no longer tests what it says", lost)
				}
				if _, err := a.Repair(t.Context(), "order", 1000); err != nil {
					t.Fatal(err)
				}
				s.set(func(s *store) { s.onReserve = nil })
				close(release)
				if got := <-batch; total(got) != int64(count) || got[0].Lo <= 1000 {
					t.Errorf("a batch got %v after a repair above 1000", got)
				}
			})
		})
	}
}

// TestRepairDropsALateLoad: a load has passed the fence, which the disk has not
// acknowledged yet, when a repair lands in the middle of its range.
func TestRepairDropsALateLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := newStore(row(10)), newDisk()
		a := node(t, s, d, segment.Config{FixedStep: true})
		drain(t, a, "order", 5)
		synctest.Wait()
		release := make(chan struct{})
		d.set(func(d *disk) { d.onSync = func() error { <-release; return nil } })
		s.Put(segment.Row{Tag: "order", MaxID: 201, Step: 10})
		id := make(chan int64)
		go func() { id <- drain(t, a, "order", 17)[16] }()
		synctest.Wait()
		if m := a.Mark("order"); m.High != 211 {
			t.Fatalf("mark %+v: the test no longer tests what it says", m)
		}
		if err := s.Post(t.Context(), segment.Notice{Tag: "order", Repaired: 205}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		close(release)
		if got := <-id; got < 205 {
			t.Errorf("ID %d after a repair to 205", got)
		}
	})
}

// TestRepairAsksTheOthers: a node that knows little repairs above what others know,
// before any of them has seen that the database lost commits.
func TestRepairAsksTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		n := three(t, s)
		drain(t, n[0], "order", 5)
		synctest.Wait()
		drain(t, n[1], "order", 195)
		synctest.Wait()
		used := s.maxID(t, "order")
		restored(s, 51)
		if maxID, err := n[0].Repair(t.Context(), "order", 0); err != nil || maxID != used+1 {
			t.Errorf("Repair = %d, %v; want %d", maxID, err, used+1)
		}
	})
}

// TestRepairNeedsEveryNode: a node that is listed and does not answer refuses the
// repair, unless a number is given. It heeds the repair before it loads again.
func TestRepairNeedsEveryNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		mute := &board{store: s}
		a := node(t, s, nil, segment.Config{NodeID: "a", FixedStep: true})
		b := node(t, mute, nil, segment.Config{NodeID: "b", FixedStep: true})
		drain(t, a, "order", 5)
		drain(t, b, "order", 95)
		synctest.Wait()
		high := b.Mark("order").High
		mute.change(func(b *board) { b.onNotices = func() error { return errDown } })
		before := s.maxID(t, "order")
		_, err := a.Repair(t.Context(), "order", 0)
		wantErr(t, err, segment.ErrSilentNodes)
		wantErr(t, err, leaf.ErrNotReady)
		if !strings.Contains(err.Error(), ": b: ") || s.maxID(t, "order") != before {
			t.Errorf("row from %d to %d, %v; want it untouched and node b named", before, s.maxID(t, "order"), err)
		}
		if maxID, err := a.Repair(t.Context(), "order", 5000); err != nil || maxID != 5001 {
			t.Errorf("Repair above 5000 = %d, %v", maxID, err)
		}
		mute.change(func(b *board) { b.onNotices = nil })
		time.Sleep(5 * time.Second)
		if m := b.Mark("order"); m.High != 5001 || m.High <= high {
			t.Errorf("mark %+v of the node that was away, want 5001", m)
		}
		if id := next(t, b, "order"); id <= 5000 {
			t.Errorf("the node that was away issues %d", id)
		}
		closeNode(t, b)
		if _, err := a.Repair(t.Context(), "order", 0); err != nil {
			t.Errorf("after a clean stop of the silent node: %v", err)
		}
	})
}

// TestRepairIsNotConfirmed: a node that answered does not heed the repair in time. The
// command says so; its repetition ends well.
func TestRepairIsNotConfirmed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		slow := &board{store: s}
		a := node(t, s, nil, segment.Config{NodeID: "a", FixedStep: true})
		node(t, slow, nil, segment.Config{NodeID: "b", FixedStep: true})
		drain(t, a, "order", 5)
		answers := 0
		slow.change(func(b *board) {
			b.onAnswer = func(segment.Answer) error {
				if answers++; answers > 1 {
					return errDown
				}
				return nil
			}
		})
		_, err := a.Repair(t.Context(), "order", 0)
		wantErr(t, err, segment.ErrSilentNodes)
		if !strings.Contains(err.Error(), "may still issue numbers below it. Repeat the command") {
			t.Error(err)
		}
		slow.change(func(b *board) { b.onAnswer = nil })
		if _, err = a.Repair(t.Context(), "order", 0); err != nil {
			t.Error(err)
		}
	})
}

// TestRepairWhoseNoticeIsLost: the database acknowledges the notice of a repair and forgets
// it. The others have answered what came later, and not heeded it.
func TestRepairWhoseNoticeIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		forgets := &board{store: s, onPost: func(n segment.Notice) bool { return n.Repaired > 0 }}
		a := node(t, forgets, nil, segment.Config{NodeID: "a", FixedStep: true})
		b := node(t, s, nil, segment.Config{NodeID: "b", FixedStep: true})
		drain(t, a, "order", 5)
		drain(t, b, "order", 5)
		_, err := a.Repair(t.Context(), "order", 5000)
		wantErr(t, err, segment.ErrSilentNodes)
		forgets.change(func(b *board) { b.onPost = nil })
		if _, err = a.Repair(t.Context(), "order", 0); err != nil {
			t.Error(err)
		}
		if id := next(t, b, "order"); id <= 5000 {
			t.Errorf("ID %d after a repair above 5000", id)
		}
	})
}

// TestStartHeedsTheBoard: a node that was stopped during a regress latches before its
// first load; one that was stopped during the repair is released.
func TestStartHeedsTheBoard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := newStore(row(10)), newDisk()
		n := three(t, s)
		drain(t, n[0], "order", 95)
		away := segment.Config{NodeID: "away", FixedStep: true, MaxWait: time.Second}
		closeNode(t, node(t, s, d, away))
		restored(s, 1)
		useUntil(t, n[0], newLedger(), leaf.ErrRegress)
		time.Sleep(3 * time.Second)
		at := s.maxID(t, "order")
		b := node(t, s, d, away)
		_, err := b.Next(t.Context(), "order")
		wantErr(t, err, leaf.ErrRegress)
		if got := s.maxID(t, "order"); got != at {
			t.Errorf("the node that was away moved the row from %d to %d", at, got)
		}
		closeNode(t, b)
		maxID, err := n[1].Repair(t.Context(), "order", 0)
		if err != nil {
			t.Fatal(err)
		}
		b = node(t, s, d, away)
		if id := next(t, b, "order"); id < maxID {
			t.Errorf("ID %d after a repair to %d", id, maxID)
		}
	})
}

// TestOldNoticeReleasesNothing: the board comes back from a backup together with the
// rows. What it says of an earlier repair must not end a later latch.
func TestOldNoticeReleasesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		a := node(t, s, nil, segment.Config{NodeID: "a", FixedStep: true, MaxWait: time.Second})
		drain(t, a, "order", 5)
		if _, err := a.Repair(t.Context(), "order", 500); err != nil {
			t.Fatal(err)
		}
		drain(t, a, "order", 100)
		restored(s, 501)
		useUntil(t, a, newLedger(), leaf.ErrRegress)
		for range 5 {
			if err := s.Post(t.Context(), segment.Notice{Tag: "order", Repaired: 501}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(3 * time.Second)
			if m := a.Mark("order"); !m.Latched {
				t.Fatalf("an old repair released the tag: %+v", m)
			}
		}
	})
}

// TestNoBoard: where nodes cannot reach one another, a repair needs the number, and
// works on each node by itself.
func TestNoBoard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		plain := struct{ segment.Store }{s} // hides the board
		a := node(t, plain, nil, segment.Config{NodeID: "a", FixedStep: true, MaxWait: time.Second})
		drain(t, a, "order", 35)
		restored(s, 1)
		useUntil(t, a, newLedger(), leaf.ErrRegress)
		_, err := a.Repair(t.Context(), "order", 0)
		wantErr(t, err, leaf.ErrConflict)
		missing := &board{store: s, onNotices: func() error { return segment.ErrSchema }}
		b := node(t, missing, nil, segment.Config{NodeID: "b", FixedStep: true, MaxWait: time.Second})
		_, err = b.Repair(t.Context(), "order", 0)
		wantErr(t, err, segment.ErrSchema)
		for _, n := range []*segment.Allocator{a, b} {
			if plan, err := n.RepairByPlan(t.Context(), "order", 400); err != nil || plan.First < 401 || plan.Alone == "" {
				t.Errorf("RepairByPlan above 400 = %+v, %v; want it to say that it reaches this node only", plan, err)
			}
			if id := next(t, n, "order"); id <= 400 {
				t.Errorf("ID %d after a repair above 400", id)
			}
		}
	})
}

// slowRaise is a store whose first Raise waits.
type slowRaise struct {
	*store
	raises         atomic.Int32
	stuck, release chan struct{}
}

func (r *slowRaise) Raise(ctx context.Context, tag string, above int64) (int64, error) {
	if r.raises.Add(1) == 1 {
		close(r.stuck)
		<-r.release
	}
	return r.store.Raise(ctx, tag, above)
}

// TestTwoRepairs: the slower of two repairs ends after the tag has issued again. It
// must not take the fence back to where it was when it began.
func TestTwoRepairs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &slowRaise{store: newStore(row(100)), stuck: make(chan struct{}), release: make(chan struct{})}
		a := node(t, s, nil, segment.Config{FixedStep: true, LoadTimeout: time.Minute})
		next(t, a, "order")
		s.Put(row(100))
		useUntil(t, a, newLedger(), leaf.ErrRegress)
		first := make(chan error, 1)
		go func() { _, err := a.Repair(t.Context(), "order", 1000); first <- err }()
		<-s.stuck
		if _, err := a.Repair(t.Context(), "order", 1000); err != nil {
			t.Fatal(err)
		}
		if id := next(t, a, "order"); id != 1001 {
			t.Fatalf("ID = %d, want 1001", id)
		}
		close(s.release)
		wantErr(t, <-first, nil)
		if m := a.Mark("order"); m.High != 1101 || m.Latched {
			t.Errorf("mark %+v, want 1101", m)
		}
	})
}
