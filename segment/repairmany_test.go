package segment_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/segment"
)

// TestRepairOfManyTags: many tags are repaired at the same time, as the rows of a sequence are, on a database that needs
// long for an answer of a node. The node that runs is not taken for one that does not answer.
func TestRepairOfManyTags(t *testing.T) {
	for _, tt := range []struct {
		name  string
		tags  int
		each  time.Duration // that an answer takes
		times int           // with other pauses between looks, which are random
	}{
		{"one after the other would take too long", 64, 50 * time.Millisecond, 1},
		{"one look has no time for all", 64, 150 * time.Millisecond, 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for range tt.times {
				synctest.Test(t, func(t *testing.T) {
					s := newStore()
					slow := &board{store: s}
					slow.change(func(b *board) { b.onAnswer = func(segment.Answer) error { time.Sleep(tt.each); return nil } })
					names := make([]string, tt.tags)
					for i := range names {
						names[i] = fmt.Sprint("tag", i)
						s.Put(segment.Row{Tag: names[i], MaxID: 1, Step: 10})
					}
					a := node(t, s, nil, segment.Config{NodeID: "a", FixedStep: true})
					b := node(t, slow, nil, segment.Config{NodeID: "b", FixedStep: true})
					var repairs sync.WaitGroup
					for _, name := range names {
						next(t, b, name)
						repairs.Go(func() {
							if first, err := a.Repair(t.Context(), name, 0); err != nil || first < 11 {
								t.Errorf("Repair of %s = %d, %v; want one above the range of node b", name, first, err)
							}
						})
					}
					repairs.Wait()
				})
			}
		})
	}
}

// loses returns a node that has just latched many rows, of which the database lost commits, and their names. The board takes
// its time for each of its notices.
func loses(t *testing.T, s *store, rows int, notice time.Duration) (a *segment.Allocator, names []string) {
	t.Helper()
	slow := &board{store: s}
	slow.change(func(b *board) {
		b.onPost = func(segment.Notice) bool { time.Sleep(notice); return false }
	})
	putBack := func() {
		for _, name := range names {
			s.Put(segment.Row{Tag: name, MaxID: 1, Step: 10})
		}
	}
	for i := range rows {
		names = append(names, fmt.Sprintf("chat/seq/%04d", i))
	}
	putBack()
	a = node(t, slow, nil, segment.Config{NodeID: "a", FixedStep: true})
	for _, name := range names {
		drain(t, a, name, 15)
	}
	time.Sleep(2 * time.Second) // no load is under way
	putBack()
	for _, name := range names { // it reads them within a minute
		for !a.Mark(name).Latched {
			time.Sleep(10 * time.Millisecond)
		}
	}
	return a, names
}

// TestRegressOfManyRows: the database has lost commits of all rows of a sequence, and takes 20 ms for each notice. The other
// node stops all of them within seconds of the moment when this one has found them.
func TestRegressOfManyRows(t *testing.T) {
	long.Plain(t)
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		b := node(t, s, nil, segment.Config{NodeID: "b", FixedStep: true})
		_, names := loses(t, s, 1024, 20*time.Millisecond)
		time.Sleep(6 * time.Second)
		for _, name := range names {
			if !b.Mark(name).Latched {
				t.Fatalf("%s still issues on the other node", name)
			}
		}
	})
}

// TestRegressOfManyRowsAtAStop: a node that has latched many rows is stopped before it has told the others of all. It tells them
// in the time that the stop has: no later look does.
func TestRegressOfManyRowsAtAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a, names := loses(t, s, 200, 300*time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := a.Close(ctx); err != nil {
			t.Fatal(err)
		}
		notices, err := s.Notices(t.Context())
		if err != nil || len(notices) != len(names) {
			t.Errorf("told of %d rows, %v; want %d", len(notices), err, len(names))
		}
	})
}
