package segment_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// TestCleanStopAfterARepair: a repair drops the current range, some of which is issued. The
// fence that a clean stop leaves is not below that.
func TestCleanStopAfterARepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := newStore(row(10)), newDisk()
		cfg := segment.Config{NodeID: "a", FixedStep: true, MaxWait: time.Second}
		a := node(t, s, d, cfg)
		last := drain(t, a, "order", 9)[8] // of [1, 11), and there is a next one
		synctest.Wait()
		if err := s.Post(t.Context(), segment.Notice{Tag: "order", Repaired: 5}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		closeNode(t, a)
		restored(s, 6)
		a = node(t, s, d, cfg)
		if id, err := a.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrRegress) {
			t.Errorf("ID %d, %v after a restart; %d was issued before", id, err, last)
		}
	})
}

// TestRepairDropsEveryRange: a node holds three ranges when it hears of a repair above all of
// them, because a batch that wanted more left. It issues from none.
func TestRepairDropsEveryRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		a := node(t, s, nil, segment.Config{NodeID: "a", FixedStep: true, MaxWait: time.Second})
		drain(t, a, "order", 2) // of [1, 11), and there is a next one
		synctest.Wait()
		stuck, release := stuckOnce(s, nil)
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan struct{})
		go func() { _, _ = a.NextN(ctx, "order", 30); close(left) }()
		<-stuck
		leave()
		<-left
		close(release)
		synctest.Wait()
		if used := s.maxID(t, "order"); used != 31 {
			t.Fatalf("the row is at %d, want three ranges in memory", used)
		}
		restored(s, 100)
		if err := s.Post(t.Context(), segment.Notice{Tag: "order", Repaired: 100}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if id := next(t, a, "order"); id < 100 {
			t.Errorf("ID %d after a repair to 100", id)
		}
	})
}

// TestRepairBesideACleanStop: a repair reaches a node that has taken its ranges out of
// service and is about to give the rest back. Its fence stays at the repair.
func TestRepairBesideACleanStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := newStore(row(10)), newDisk()
		cfg := segment.Config{NodeID: "a", FixedStep: true, MaxWait: time.Second}
		a := node(t, s, d, cfg)
		drain(t, a, "order", 9)
		synctest.Wait()
		// The node hangs where it lists the recent tags, after its last look at the board.
		entered, release := make(chan struct{}), make(chan struct{})
		d.set(func(d *disk) {
			d.outside = func() error {
				d.set(func(d *disk) { d.outside = nil })
				close(entered)
				<-release
				return nil
			}
		})
		closed := make(chan struct{})
		go func() { closeNode(t, a); close(closed) }()
		<-entered
		repaired := make(chan struct{})
		go func() { _, _ = a.Repair(t.Context(), "order", 5000); close(repaired) }()
		synctest.Wait()
		close(release)
		<-closed
		<-repaired
		a = node(t, s, d, cfg)
		if s.maxID(t, "order") > 5000 && a.Mark("order").High < 5000 {
			t.Errorf("mark %+v after a repair above 5000", a.Mark("order"))
		}
	})
}

// TestRegressIsHeardWhileTheDiskHangs: a notice of the board stops its tag at once, although
// the fence file cannot be written. The same holds for a second notice.
func TestRegressIsHeardWhileTheDiskHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := newStore(row(1000), segment.Row{Tag: "user", MaxID: 1, Step: 1000}), newDisk()
		a := node(t, s, d, segment.Config{NodeID: "a", FixedStep: true, MaxWait: time.Second})
		drain(t, a, "order", 5)
		drain(t, a, "user", 5)
		synctest.Wait()
		release := make(chan struct{})
		d.set(func(d *disk) { d.outside = func() error { <-release; return nil } })
		for _, tag := range []string{"order", "user"} {
			if err := s.Post(t.Context(), segment.Notice{Tag: tag, Regress: 50000}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(30 * time.Second)
			if id, err := a.Next(t.Context(), tag); !errors.Is(err, leaf.ErrRegress) {
				t.Errorf("tag %s: ID %d, %v; want ErrRegress", tag, id, err)
			}
		}
		close(release)
		time.Sleep(5 * time.Second)
		b := node(t, s, d.copy(), segment.Config{NodeID: "a"})
		for _, tag := range []string{"order", "user"} {
			if m := b.Mark(tag); !m.Latched {
				t.Errorf("tag %s: mark %+v on the disk", tag, m)
			}
		}
	})
}

// TestTwoLossesWithEqualEnds: one node has seen nothing of the first loss, and took what the
// other one holds. After the second loss both latch at the same end. Neither serves the
// stock that both hold.
func TestTwoLossesWithEqualEnds(t *testing.T) {
	for name, tables := range map[string]bool{"with a board": true, "without": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(row(1000))
				var on segment.Store = s
				if !tables {
					on = struct{ segment.Store }{s}
				}
				var n [2]*segment.Allocator
				for i := range n {
					n[i] = node(t, on, nil, segment.Config{NodeID: fmt.Sprint(i), FixedStep: true, MaxWait: time.Second})
					drain(t, n[i], "order", 100)
					s.Put(row(1000)) // a loss
				}
				for i, a := range n {
					_, _ = a.Next(t.Context(), "order") // asks for the next range
					synctest.Wait()
					if m := a.Mark("order"); !m.Latched || m.High != 1001 {
						t.Errorf("node %d: mark %+v, want it latched at 1001", i, m)
					}
					s.Put(row(1000))
				}
				time.Sleep(5 * time.Second)
				for i, a := range n {
					if id, err := a.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrRegress) {
						t.Errorf("node %d: ID %d, %v", i, id, err)
					}
				}
			})
		})
	}
}

// TestLookThatARepairOvertakes: what a node read before its own repair does not latch the
// tag again. The node throws away all of that look and looks again: it does not answer what
// it has not heeded.
func TestLookThatARepairOvertakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &board{store: newStore(row(10))}
		a := node(t, b, nil, segment.Config{NodeID: "a", FixedStep: true, MaxWait: time.Second, LoadTimeout: time.Minute})
		drain(t, a, "order", 35)
		synctest.Wait()
		restored(b.store, 11)
		useUntil(t, a, newLedger(), leaf.ErrRegress)
		time.Sleep(5 * time.Second)
		read, release := make(chan struct{}), make(chan struct{})
		b.change(func(b *board) {
			b.onNotices = func() error { // the node's look alone
				b.change(func(b *board) { b.onNotices = nil })
				return b.Post(t.Context(), segment.Notice{Tag: "user", Asked: 7, Repaired: 900})
			}
			b.readLate = func() {
				b.change(func(b *board) { b.readLate = nil })
				close(read)
				<-release
			}
		})
		<-read
		if _, err := a.Repair(t.Context(), "order", 0); err != nil {
			t.Fatal(err)
		}
		close(release)
		synctest.Wait()
		if id, err := a.Next(t.Context(), "order"); err != nil {
			t.Errorf("ID %d, %v after the repair; mark %+v", id, err, a.Mark("order"))
		}
		time.Sleep(5 * time.Second)
		answers, err := b.Answers(t.Context(), "user")
		if err != nil || len(answers) != 1 || answers[0].Asked != 7 || answers[0].High != 900 {
			t.Errorf("answers %+v, %v; want one to question 7, with the repair heeded", answers, err)
		}
	})
}

// TestNoticesThatNoNodeWrote are ignored: a fence file with such a mark would refuse the
// next start.
func TestNoticesThatNoNodeWrote(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d := newStore(row(10)), newDisk()
		for _, n := range []segment.Notice{
			{Tag: "", Regress: 5},
			{Tag: string(make([]byte, leaf.MaxTagLen+1)), Repaired: 5},
			{Tag: "a", Regress: segment.MaxMaxID + 1},
			{Tag: "b", Repaired: segment.MaxMaxID + 1},
			{Tag: "c", Asked: segment.MaxMaxID + 1, Repaired: 5},
		} {
			if err := s.Post(t.Context(), n); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			a := node(t, s, d, segment.Config{NodeID: "a"})
			drain(t, a, "order", 5)
			time.Sleep(3 * time.Second)
			closeNode(t, a)
		}
	})
}

// TestStartDoesNotWaitForOldQuestions: a node answers what was asked before its start
// while it serves, the newest question first.
func TestStartDoesNotWaitForOldQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		slow := &board{store: s, onAnswer: func(segment.Answer) error { time.Sleep(100 * time.Millisecond); return nil }}
		for i := range 2000 { // 25 s of answers, eight at a time
			if err := s.Post(t.Context(), segment.Notice{Tag: fmt.Sprint("t", i), Asked: 2, Regress: 5, Repaired: 6}); err != nil {
				t.Fatal(err)
			}
		}
		a := node(t, s, nil, segment.Config{NodeID: "a", FixedStep: true})
		began := time.Now()
		b := node(t, slow, nil, segment.Config{NodeID: "b", FixedStep: true})
		if next(t, b, "order"); time.Since(began) > 500*time.Millisecond {
			t.Errorf("first ID after %v", time.Since(began))
		}
		if _, err := a.Repair(t.Context(), "order", 0); err != nil {
			t.Error(err)
		}
	})
}

// TestBoardThatCannotBeRead keeps no node from serving: a user of the original has rights
// on leaf_alloc alone.
func TestBoardThatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		refuse := func() error { return fmt.Errorf("command: %w", segment.ErrDenied) }
		b := &board{store: newStore(row(10)), onEnter: refuse, onNotices: refuse}
		a := node(t, b, nil, segment.Config{NodeID: "a"})
		next(t, a, "order")
		_, err := a.Repair(t.Context(), "order", 0)
		wantErr(t, err, segment.ErrDenied)
	})
}

// TestBoardThatCannotBeWritten keeps no node from serving, nor from hearing.
func TestBoardThatCannotBeWritten(t *testing.T) {
	for name, why := range map[string]error{"denied": segment.ErrDenied, "down later": errDown} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := &board{store: newStore(row(10))}
				refuse := func() error { return fmt.Errorf("INSERT command: %w", why) }
				if errors.Is(why, segment.ErrDenied) {
					b.onEnter = refuse
				}
				a := node(t, b, nil, segment.Config{NodeID: "a", FixedStep: true, MaxWait: time.Second})
				drain(t, a, "order", 5)
				b.change(func(b *board) { b.onEnter = refuse })
				time.Sleep(2 * time.Minute)
				if err := b.Store.Post(t.Context(), segment.Notice{Tag: "order", Regress: 500}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Second)
				if m := a.Mark("order"); !m.Latched {
					t.Errorf("mark %+v: the node has not heard of the regress", m)
				}
			})
		})
	}
}
