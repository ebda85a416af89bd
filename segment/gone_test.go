package segment_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// TestGoneRowAskedForAgain: callers go on asking for a tag whose row is gone. The node looks
// at the board as often as before.
func TestGoneRowAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int32
		b := &board{store: newStore(row(10)), onNotices: func() error { looks.Add(1); return nil }}
		a := node(t, b, nil, segment.Config{FixedStep: true, NegativeTTL: 100 * time.Millisecond})
		drain(t, a, "order", 5)
		b.Remove("order")
		time.Sleep(2 * time.Minute)
		looks.Store(0)
		for range 600 {
			if _, err := a.Next(t.Context(), "order"); err == nil {
				continue // what is in memory
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := looks.Load(); n > 65 {
			t.Errorf("%d looks at the board in a minute", n)
		}
	})
}

// createAgain creates the tag of most tests at 1, as the error of an unknown tag says, and
// then where the refusal says.
func createAgain(t *testing.T, s *store, want int64) {
	t.Helper()
	again := segment.NewRow{Tag: "order", Start: 1, Step: 10}
	err := s.Create(t.Context(), again)
	if says := fmt.Sprintf("use --start %d or more", want); !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), says) {
		t.Fatalf("Create at 1: %v; want ErrConflict with %q", err, says)
	}
	again.Start = want
	if err := s.Create(t.Context(), again); err != nil {
		t.Fatal(err)
	}
}

// TestRowThatIsGone: a row vanishes as if nobody had deleted it. The node that took ranges
// of it tells the board without being asked, so that no new row begins below the old one.
func TestRowThatIsGone(t *testing.T) {
	fixed := segment.Config{FixedStep: true}
	for _, c := range []struct {
		name string
		miss func(t *testing.T, s *store, d *disk, a *segment.Allocator) // until the node misses the row
	}{
		{"a reading misses it", func(_ *testing.T, s *store, _ *disk, _ *segment.Allocator) {
			s.Remove("order")
			time.Sleep(time.Minute + 3*time.Second)
		}},
		{"a load misses it", func(t *testing.T, s *store, _ *disk, a *segment.Allocator) {
			s.Remove("order")
			for _, err := a.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrUnknownTag); _, err = a.Next(t.Context(), "order") {
				if err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second)
		}},
		{"many rows at once", func(_ *testing.T, s *store, _ *disk, _ *segment.Allocator) {
			for _, tag := range []string{"order", "a", "b", "c"} {
				s.Remove(tag)
			}
			time.Sleep(time.Minute + 3*time.Second)
		}},
		{"while the node is stopped", func(t *testing.T, s *store, d *disk, a *segment.Allocator) {
			s.set(func(s *store) {
				s.onGiveBack = func(context.Context, string, func() error) error { return leaf.ErrConflict }
			})
			closeNode(t, a)
			s.Remove("order")
			node(t, s, d, fixed)
			time.Sleep(3 * time.Second)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, d, ids := newStore(row(10)), newDisk(), newLedger()
				for _, tag := range []string{"a", "b", "c", "d", "e"} {
					s.Put(segment.Row{Tag: tag, MaxID: 1, Step: 10})
				}
				a := node(t, s, d, fixed)
				ids.add(t, "before", drain(t, a, "order", 15)...)
				synctest.Wait()
				c.miss(t, s, d, a)
				end := a.Mark("order").High
				if c.name == "while the node is stopped" {
					end = 16 // the tail counts as unused, whatever became of its return
				}
				createAgain(t, s, end)
				ids.add(t, "after", drain(t, node(t, s, nil, segment.Config{NodeID: "fresh"}), "order", 100)...)
			})
		})
	}
}

// TestRowThatIsGoneUnderALoad: the database has forgotten the row and a range of it whose
// reply is still on its way. What the node told does not have the range, so it is dropped.
func TestRowThatIsGoneUnderALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ids := newStore(row(10)), newLedger()
		a := node(t, s, nil, segment.Config{FixedStep: true, LoadTimeout: time.Minute, SyncInterval: 10 * time.Second})
		release := make(chan struct{})
		var parked atomic.Bool
		s.set(func(s *store) {
			s.onReserve = func(_ context.Context, _ segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
				res, err := do()
				if res.Range.Lo == 21 && !parked.Swap(true) {
					<-release
				}
				return res, err
			}
		})
		ids.add(t, "old", drain(t, a, "order", 15)...) // the third range is on its way
		synctest.Wait()
		if !parked.Load() {
			t.Fatal("no range is on its way")
		}
		s.Remove("order")
		time.Sleep(20 * time.Second)
		createAgain(t, s, 21)
		b := node(t, s, nil, segment.Config{NodeID: "fresh"})
		ids.add(t, "new", drain(t, b, "order", 30)...)
		close(release)
		synctest.Wait()
		ids.add(t, "old", drain(t, a, "order", 100)...)
	})
}

// TestGoneRowHidesNoAnswer: what a node tells without a question takes the place of its
// answer to one. A repair that waits for the answer still has it. The node tells it once.
func TestGoneRowHidesNoAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		var told atomic.Int32
		b := &board{store: s, onAnswer: func(segment.Answer) error { told.Add(1); return nil }}
		a := node(t, b, nil, segment.Config{FixedStep: true})
		drain(t, a, "order", 5)
		if err := s.Post(t.Context(), segment.Notice{Tag: "order", Asked: 7}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		s.Remove("order")
		for i := range 100 {
			answers, err := s.Answers(t.Context(), "order")
			want := segment.Answer{Tag: "order", Node: "node-1", Asked: 7, High: a.Mark("order").High}
			if i < 50 && len(answers) == 1 { // not told yet that the row is gone; it may have loaded since the question
				want.High = answers[0].High
			}
			if err != nil || !slices.Equal(answers, []segment.Answer{want}) {
				t.Fatalf("answers %+v, %v; want %+v", answers, err, want)
			}
			time.Sleep(2 * time.Second)
		}
		if n := told.Load(); n != 2 {
			t.Errorf("told %d times, want 2: when it was asked, and when the row was gone", n)
		}
	})
}
