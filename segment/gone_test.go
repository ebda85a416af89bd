package segment_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/test/long"
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
	createAgainWith(t, s, segment.Options{}, want)
}

func createAgainWith(t *testing.T, s *store, o segment.Options, want int64) {
	t.Helper()
	again := segment.NewRow{Tag: "order", Start: 1, Step: 10, Options: o}
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
				s.onReturn = func(context.Context, string, func() error) error { return leaf.ErrConflict }
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

// forgetful is a board that acknowledges answers and forgets them, as a failover does.
type forgetful struct {
	*board

	forgets atomic.Bool
}

func (f *forgetful) Answer(ctx context.Context, a segment.Answer) error {
	if f.forgets.Load() {
		return nil
	}
	return f.board.Answer(ctx, a)
}

// TestBoardForgetsAGoneRow: what a node has told of a row that is gone is lost in a failover, or a backup takes
// the place of the board. The node tells it again: within seconds if it saw that, else within the minute
// after which an operator creates the tag again, as docs/OPERATIONS.md says. So it does if it has more to tell.
func TestBoardForgetsAGoneRow(t *testing.T) {
	long.Plain(t)
	for name, seen := range map[string]bool{"seen": true, "unseen": false, "unseen, and another row goes": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &forgetful{board: &board{store: newStore(row(10), segment.Row{Tag: "other", MaxID: 1, Step: 10})}}
				a := node(t, f, nil, segment.Config{NodeID: "a", FixedStep: true})
				drain(t, a, "order", 15)
				drain(t, a, "other", 15)
				synctest.Wait()
				f.forgets.Store(true)
				f.Remove("order")
				time.Sleep(150 * time.Second) // the node has just looked whether the board has what it told
				f.forgets.Store(false)
				if !seen && name != "unseen" { // a load finds out, so the node tells it at once
					f.Remove("other")
					for _, err := a.Next(t.Context(), "other"); !errors.Is(err, leaf.ErrUnknownTag); _, err = a.Next(t.Context(), "other") {
						if err != nil {
							t.Fatal(err)
						}
					}
				}
				if seen {
					f.change(func(b *board) { b.onNotices = func() error { return errDown } })
					time.Sleep(10 * time.Second)
					f.change(func(b *board) { b.onNotices = nil })
					time.Sleep(10 * time.Second)
				} else {
					time.Sleep(time.Minute + 3*time.Second)
				}
				createAgain(t, f.store, 31)
			})
		})
	}
}

// TestGoneRowsBehindOnesThatFail: hundreds of rows are gone, and the board never takes the answers about the first ones, be it
// one or more than are posted at once. All others are told, and the node does not write without pauses.
func TestGoneRowsBehindOnesThatFail(t *testing.T) {
	long.Plain(t)
	for failing, most := range map[int]int64{1: 5000, 10: 20_000} {
		t.Run(strconv.Itoa(failing), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const count = 300
				var rows []segment.Row
				for i := range count {
					rows = append(rows, segment.Row{Tag: fmt.Sprintf("t%03d", i), MaxID: 1, Step: 10})
				}
				var answers atomic.Int64
				b := &board{store: newStore(rows...)}
				a := node(t, b, nil, segment.Config{NodeID: "a", FixedStep: true, SyncInterval: 10 * time.Second})
				for _, r := range rows {
					drain(t, a, r.Tag, 1)
				}
				synctest.Wait()
				b.change(func(b *board) {
					b.onAnswer = func(x segment.Answer) error {
						answers.Add(1)
						if x.Tag < rows[failing].Tag {
							time.Sleep(time.Second)
							return errors.New("lock wait timeout")
						}
						time.Sleep(5 * time.Millisecond)
						return nil
					}
				})
				for _, r := range rows {
					b.Remove(r.Tag)
				}
				time.Sleep(time.Hour)
				for _, r := range rows[failing:] {
					if got, err := b.Answers(t.Context(), r.Tag); err != nil || len(got) == 0 {
						t.Fatalf("nothing is told of %s: %v", r.Tag, err)
					}
				}
				if n := answers.Load(); n > most {
					t.Errorf("%d answers in an hour", n)
				}
				b.change(func(b *board) { b.onAnswer = nil })
				time.Sleep(2 * time.Second) // the last slow answer ends
			})
		})
	}
}

// TestManyRowsAreGone: the rows of a sequence are gone, after a backup from before it was made, and a database far away
// takes 20 ms for each answer. All are told within the minute after which an operator makes tags again, as
// docs/OPERATIONS.md says, also the tag whose name comes last.
func TestManyRowsAreGone(t *testing.T) {
	long.Plain(t)
	synctest.Test(t, func(t *testing.T) {
		rows := []segment.Row{row(10)}
		for i := range 1024 {
			rows = append(rows, segment.Row{Tag: fmt.Sprintf("chat/seq/%04d", i), MaxID: 1, Step: 10})
		}
		b := &board{store: newStore(rows...)}
		a := node(t, b, nil, segment.Config{NodeID: "a", FixedStep: true})
		for _, r := range rows {
			drain(t, a, r.Tag, 15)
		}
		synctest.Wait()
		b.change(func(b *board) {
			b.onAnswer = func(segment.Answer) error { time.Sleep(20 * time.Millisecond); return nil }
		})
		for _, r := range rows {
			b.Remove(r.Tag)
		}
		time.Sleep(time.Minute + 10*time.Second) // a reading of the rows misses them, and the looks after it tell
		createAgain(t, b.store, a.Mark("order").High)
	})
}
