package segment_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
)

// unevenly starts nodes a, b and c and lets b issue by far the most. It returns the last
// ID of b.
func unevenly(t *testing.T, stores ...segment.Store) (all [3]*segment.Allocator, last int64) {
	t.Helper()
	for i, s := range stores {
		all[i] = node(t, s, nil, segment.Config{NodeID: string(rune('a' + i)), FixedStep: true, MaxWait: time.Second})
	}
	for _, i := range []int{0, 2} {
		drain(t, all[i], "order", 5)
		synctest.Wait()
	}
	ids := drain(t, all[1], "order", 195)
	synctest.Wait()
	return all, ids[len(ids)-1]
}

// TestRepairHearsNodesThatAreNotListed: the list of nodes was lost with the commits, or
// its table was made a moment ago. A node that runs is heard all the same, at any moment
// between two of its looks at the board.
func TestRepairHearsNodesThatAreNotListed(t *testing.T) {
	for i := range 12 {
		t.Run(fmt.Sprint("list lost ", i), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(row(10))
				slow := &board{store: s, readLate: func() { time.Sleep(900 * time.Millisecond) }}
				n, last := unevenly(t, s, slow, s)
				time.Sleep(10*time.Second + time.Duration(i)*230*time.Millisecond)
				restored(s, 51)
				if err := s.Leave(t.Context(), "b"); err != nil {
					t.Fatal(err)
				}
				if maxID, err := n[0].Repair(t.Context(), "order", 0); err != nil || maxID <= last {
					t.Errorf("Repair = %d, %v; b issued up to %d", maxID, err, last)
				}
			})
		})
		t.Run(fmt.Sprint("table is new ", i), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				missing := func() error { return segment.ErrSchema }
				b := &board{store: newStore(row(10)), onEnter: missing, onNotices: missing}
				n, last := unevenly(t, b, b, b)
				restored(b.store, 51)
				time.Sleep(time.Duration(i*250) * time.Millisecond)
				_, err := n[0].Repair(t.Context(), "order", 0)
				wantErr(t, err, segment.ErrSchema)
				b.change(func(b *board) { b.onEnter, b.onNotices = nil, nil })
				if maxID, err := n[0].Repair(t.Context(), "order", 0); err != nil || maxID <= last {
					t.Errorf("Repair = %d, %v; b issued up to %d", maxID, err, last)
				}
			})
		})
	}
}

// TestRepairMeetsANodeThatStarts: the node with the highest numbers starts after the
// question and before the row moves. Its word at the end counts.
func TestRepairMeetsANodeThatStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, d := &board{store: newStore(row(10))}, newDisk()
		a := node(t, b, nil, segment.Config{NodeID: "a", FixedStep: true, MaxWait: time.Second})
		cfg := segment.Config{NodeID: "c", FixedStep: true, MaxWait: time.Second}
		c := node(t, b, d, cfg)
		drain(t, a, "order", 5)
		synctest.Wait()
		last := drain(t, c, "order", 195)[194]
		synctest.Wait()
		closeNode(t, c)
		d.set(func(d *disk) { delete(d.files, "recent.json") }) // it served the tag days ago, and loads nothing of it now
		restored(b.store, 51)
		b.change(func(b *board) {
			b.onRaise = func() {
				b.change(func(b *board) { b.onRaise = nil })
				node(t, b, d, cfg)
			}
		})
		if maxID, err := a.Repair(t.Context(), "order", 0); err != nil || maxID <= last {
			t.Errorf("Repair = %d, %v; c issued up to %d", maxID, err, last)
		}
	})
}

// TestRepairMeetsANodeThatLoads: a node loads between the row's move and the notice of it.
// What it takes there is above the repair and no reason to repair again.
func TestRepairMeetsANodeThatLoads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var other *segment.Allocator
		b, rounds := &board{store: newStore(row(10))}, 0
		b.onRaise = func() { drain(t, other, "order", 25) }
		b.onPost = func(n segment.Notice) bool {
			if n.Repaired > 0 {
				rounds++
			}
			return false
		}
		a := node(t, b, nil, segment.Config{NodeID: "a", FixedStep: true})
		other = node(t, b, nil, segment.Config{NodeID: "b", FixedStep: true})
		drain(t, a, "order", 5)
		if _, err := a.Repair(t.Context(), "order", 0); err != nil || rounds != 1 {
			t.Errorf("%d rounds, %v", rounds, err)
		}
	})
}

// TestRepairMeetsANodeThatStops: the node with the highest numbers stops when it is asked. It
// answers before it is gone, so that the command need not be repeated.
func TestRepairMeetsANodeThatStops(t *testing.T) {
	for i := range 10 {
		synctest.Test(t, func(t *testing.T) {
			s := newStore(row(10))
			n, last := unevenly(t, s, s, s)
			time.Sleep(10*time.Second + time.Duration(i)*170*time.Millisecond)
			restored(s, 51)
			go func() {
				time.Sleep(100 * time.Millisecond)
				closeNode(t, n[1])
			}()
			if maxID, err := n[0].Repair(t.Context(), "order", 0); err != nil || maxID <= last {
				t.Errorf("Repair = %d, %v; b issued up to %d", maxID, err, last)
			}
		})
	}
}

// TestRepairMeetsANodeThatIsKilled: the node with the highest numbers leaves the list when
// it is asked, and does not answer. The repair does not go on without it.
func TestRepairMeetsANodeThatIsKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		mute := &board{store: s}
		n, last := unevenly(t, s, mute, s)
		time.Sleep(10 * time.Second)
		restored(s, 51)
		mute.change(func(b *board) {
			b.onNotices, b.onEnter = func() error { return errDown }, func() error { return errDown }
		})
		go func() {
			time.Sleep(time.Second)
			_ = s.Leave(t.Context(), "b")
		}()
		maxID, err := n[0].Repair(t.Context(), "order", 0)
		if !errors.Is(err, segment.ErrSilentNodes) {
			t.Errorf("Repair = %d, %v; b issued up to %d", maxID, err, last)
		}
	})
}

// TestStopHearsTheBoard: a node that stops issues from its stock while a load of it hangs.
// Meanwhile it answers a repair and heeds it, and stops at a regress.
func TestStopHearsTheBoard(t *testing.T) {
	for _, name := range []string{"repair", "regress"} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(row(10), segment.Row{Tag: "user", MaxID: 1, Step: 1000})
				a := node(t, s, nil, segment.Config{NodeID: "a", FixedStep: true})
				b := node(t, s, nil, segment.Config{NodeID: "b", FixedStep: true, LoadTimeout: 20 * time.Second})
				drain(t, b, "user", 50)
				synctest.Wait()
				stuck, release := stuckOnce(s, nil)
				go func() { _, _ = b.Next(t.Context(), "order") }()
				<-stuck
				closed := make(chan struct{})
				go func() { closeNode(t, b); close(closed) }()
				if name == "repair" {
					time.Sleep(time.Second)
					if maxID, err := a.Repair(t.Context(), "user", 0); err != nil || maxID <= 1001 {
						t.Errorf("Repair = %d, %v; b issued from a range to 1001", maxID, err)
					}
				} else if err := s.Post(t.Context(), segment.Notice{Tag: "user", Regress: 5000}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(3 * time.Second)
				if id, err := b.Next(t.Context(), "user"); err == nil {
					t.Errorf("ID %d of a range below the repair, or of a tag that is stopped", id)
				}
				close(release)
				<-closed
			})
		})
	}
}

// TestRepairAboveAnEarlierNumber: the number of an earlier incident is no word on a node
// that is silent now.
func TestRepairAboveAnEarlierNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		mute := &board{store: s}
		a := node(t, s, nil, segment.Config{NodeID: "a", FixedStep: true})
		b := node(t, mute, nil, segment.Config{NodeID: "b", FixedStep: true})
		drain(t, a, "order", 5)
		drain(t, b, "order", 5)
		if _, err := a.Repair(t.Context(), "order", 1000); err != nil {
			t.Fatal(err)
		}
		drain(t, a, "order", 500)
		drain(t, b, "order", 500)
		if _, err := a.Repair(t.Context(), "order", 1000); err != nil {
			t.Errorf("the same command again while every node answers: %v", err)
		}
		drain(t, a, "order", 100)
		mute.change(func(b *board) { b.onNotices = func() error { return errDown } })
		restored(s, 1100)
		_, err := a.Repair(t.Context(), "order", 1000)
		wantErr(t, err, leaf.ErrConflict)
	})
}

// TestRepairAfterTheNoticesWereLost: the nodes' old answers are still there. They answer
// no new question for a node that is silent.
func TestRepairAfterTheNoticesWereLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		mute := &board{store: s}
		b := &board{store: s, notices: memory.New()}
		mute.notices = b.notices
		n, _ := unevenly(t, b, mute, b)
		if _, err := n[0].Repair(t.Context(), "order", 0); err != nil {
			t.Fatal(err)
		}
		drain(t, n[0], "order", 5)
		last := drain(t, n[1], "order", 195)[194]
		synctest.Wait()
		b.change(func(b *board) { b.notices = memory.New() })
		mute.change(func(b *board) { b.onNotices = func() error { return errDown } })
		restored(s, 260)
		maxID, err := n[0].Repair(t.Context(), "order", 0)
		if at := s.maxID(t, "order"); !errors.Is(err, segment.ErrSilentNodes) || at != 260 {
			t.Errorf("Repair = %d, %v, row at %d; b is silent and issued up to %d", maxID, err, at, last)
		}
	})
}

// TestRepairBesideARepair: while the row of one repair is locked, another one asks the
// nodes and ends. Their answers to that one do not confirm the first.
func TestRepairBesideARepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		slow := &board{store: s, onRaise: func() { time.Sleep(8 * time.Second) }}
		var n [3]*segment.Allocator
		for i, on := range []segment.Store{slow, s, s} {
			n[i] = node(t, on, nil, segment.Config{NodeID: string(rune('a' + i)), FixedStep: true, LoadTimeout: 20 * time.Second})
			drain(t, n[i], "order", 2)
		}
		synctest.Wait()
		other := make(chan error)
		go func() {
			time.Sleep(time.Millisecond)
			_, err := n[1].Repair(t.Context(), "order", 0)
			drain(t, n[2], "order", 2)
			other <- err
		}()
		if _, err := n[0].Repair(t.Context(), "order", 5000); err != nil {
			t.Error(err)
		}
		if id := next(t, n[2], "order"); id <= 5000 {
			t.Errorf("a node issues %d after a repair above 5000", id)
		}
		if err := <-other; err != nil {
			t.Error("the other repair:", err)
		}
	})
}
