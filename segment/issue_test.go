package segment_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

func TestFirstIDsOfAJavaRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := node(t, newStore(row(2000)), nil, segment.Config{})
		for want := int64(1); want <= 4500; want++ {
			if got := next(t, a, "order"); got != want {
				t.Fatalf("ID = %d, want %d", got, want)
			}
		}
	})
}

// TestDistinct runs several nodes with several goroutines each on one store, on
// steps that divide nothing, while nodes restart: half of them cleanly, half by
// being forgotten with a copy of their data directory left behind.
func TestDistinct(t *testing.T) {
	for _, step := range []int64{1, 7, 13, 1000} {
		t.Run(fmt.Sprintf("step=%d", step), func(t *testing.T) {
			t.Parallel()
			s := newStore(row(step))
			ids := newLedger()
			var nodes sync.WaitGroup
			for n := range 3 {
				nodes.Go(func() {
					d := newDisk()
					for restart := range 4 {
						name := fmt.Sprintf("node %d, run %d", n, restart)
						a := node(t, s, d, segment.Config{NodeID: fmt.Sprint("node-", n), KeepUnused: restart%2 == 0})
						useNode(t, a, name, ids)
						if restart%2 == 1 {
							closeNode(t, a)
						}
						d = d.copy() // a forgotten node may still load, and write a file that the next one reads
					}
				})
			}
			nodes.Wait()
			if got := s.maxID(t, "order"); int64(ids.len()) >= got {
				t.Fatalf("%d IDs below max_id %d", ids.len(), got)
			}
		})
	}
}

// useNode takes IDs from four goroutines, singly and in batches, by name and by
// handle, and checks that each goroutine sees increasing ones.
func useNode(t *testing.T, a *segment.Allocator, name string, ids *ledger) {
	var callers sync.WaitGroup
	for c := range 4 {
		callers.Go(func() {
			tag := a.Tag("order")
			last := int64(-1)
			for i := range 200 {
				got := []leaf.Range{}
				var err error
				switch {
				case i%10 == 9:
					got, err = a.NextN(t.Context(), "order", 1+rand.IntN(30))
				case c%2 == 0:
					var id int64
					id, err = a.Next(t.Context(), "order")
					got = append(got, leaf.Range{Lo: id, Hi: id + 1})
				default:
					var id int64
					id, err = tag.Next(t.Context())
					got = append(got, leaf.Range{Lo: id, Hi: id + 1})
				}
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				for _, r := range got {
					if r.Lo <= last {
						t.Errorf("%s: %v follows %d", name, r, last)
					}
					for id := r.Lo; id < r.Hi; id++ {
						ids.add(t, name, id)
					}
					last = r.Hi - 1
				}
			}
		})
	}
	callers.Wait()
}

func TestNextN(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := node(t, newStore(row(10)), nil, segment.Config{FixedStep: true})
		var ids []int64
		for _, n := range []int{1, 3, 10, 25, 7, 100, 1} {
			ranges, err := a.NextN(t.Context(), "order", n)
			if err != nil {
				t.Fatal(err)
			}
			total := 0
			for i, r := range ranges {
				if r.Len() == 0 || i > 0 && r.Lo <= ranges[i-1].Hi {
					t.Fatalf("n=%d: ranges %v are empty, unordered or not merged", n, ranges)
				}
				for id := r.Lo; id < r.Hi; id++ {
					ids = append(ids, id)
					total++
				}
			}
			if total != n {
				t.Fatalf("n=%d: got %d IDs in %v", n, total, ranges)
			}
		}
		increasing(t, ids)
		if ids[len(ids)-1] != int64(len(ids)) {
			t.Fatalf("one node alone left gaps: %d IDs end at %d", len(ids), ids[len(ids)-1])
		}
	})
}

func TestNextNAcrossSomebodyElsesRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		a := node(t, s, nil, segment.Config{FixedStep: true})
		drain(t, a, "order", 3)
		synctest.Wait()
		if _, err := s.Raise(t.Context(), "order", 500); err != nil {
			t.Fatal(err)
		}
		drain(t, a, "order", 8) // 4..10 and, from a range that was loaded before the raise, 11
		got, err := a.NextN(t.Context(), "order", 15)
		if err != nil {
			t.Fatal(err)
		}
		want := []leaf.Range{{Lo: 12, Hi: 21}, {Lo: 500, Hi: 506}}
		if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
			t.Fatalf("NextN = %v, want %v", got, want)
		}
	})
}

func TestBadRequests(t *testing.T) {
	a := node(t, newStore(row(10)), nil, segment.Config{})
	for name, call := range map[string]func() error{
		"count 0":       func() error { _, err := a.NextN(t.Context(), "order", 0); return err },
		"count too big": func() error { _, err := a.NextN(t.Context(), "order", leaf.MaxBatch+1); return err },
		"empty tag":     func() error { _, err := a.Next(t.Context(), ""); return err },
		"long tag":      func() error { _, err := a.Next(t.Context(), strings.Repeat("x", 129)); return err },
		"long by handle": func() error {
			_, err := a.Tag(strings.Repeat("x", 129)).Next(t.Context())
			return err
		},
	} {
		if err := call(); leaf.ClassOf(err).Code != "bad_request" || !strings.Contains(err.Error(), "must have") && !strings.Contains(err.Error(), "must be") {
			t.Errorf("%s: error = %v, want a bad request that names the limit", name, err)
		}
	}
}

// TestEdges: rows that may not be served leave max_id as it is.
func TestEdges(t *testing.T) {
	for _, c := range []struct {
		name    string
		row     segment.Row
		want    error
		firstID int64
	}{
		{"step -100", segment.Row{MaxID: 1, Step: -100}, leaf.ErrInvalidRow, 0},
		{"step 0", segment.Row{MaxID: 1, Step: 0}, leaf.ErrInvalidRow, 0},
		{"step 1", segment.Row{MaxID: 1, Step: 1}, nil, 1},
		{"step 5,000,000", segment.Row{MaxID: 1, Step: 5_000_000}, nil, 1},
		{"step 2^30", segment.Row{MaxID: 1, Step: 1 << 30}, nil, 1},
		{"step 2^30+1", segment.Row{MaxID: 1, Step: 1<<30 + 1}, leaf.ErrInvalidRow, 0},
		{"step 2^31-1", segment.Row{MaxID: 1, Step: 1<<31 - 1}, leaf.ErrInvalidRow, 0},
		{"max_id -5", segment.Row{MaxID: -5, Step: 10}, leaf.ErrInvalidRow, 0},
		{"max_id 0", segment.Row{MaxID: 0, Step: 10}, nil, 0},
		{"last range", segment.Row{MaxID: segment.MaxMaxID - 10, Step: 10}, nil, segment.MaxMaxID - 10},
		{"past the end", segment.Row{MaxID: segment.MaxMaxID - 9, Step: 10}, leaf.ErrOverflow, 0},
		{"at the end of int64", segment.Row{MaxID: 1<<63 - 1, Step: 10}, leaf.ErrOverflow, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.row.Tag = "order"
				s := newStore(c.row)
				a := node(t, s, nil, segment.Config{})
				id, err := a.Next(t.Context(), "order")
				if c.want != nil {
					wantErr(t, err, c.want)
					if got := s.maxID(t, "order"); got != c.row.MaxID {
						t.Fatalf("max_id moved from %d to %d", c.row.MaxID, got)
					}
					return
				}
				if err != nil || id != c.firstID {
					t.Fatalf("Next = %d, %v; want %d", id, err, c.firstID)
				}
			})
		})
	}
}

func TestInvalidRowHealsWhenCorrected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(0))
		a := node(t, s, nil, segment.Config{})
		_, err := a.Next(t.Context(), "order")
		wantErr(t, err, leaf.ErrInvalidRow)
		step := int64(10)
		if err := s.Update(t.Context(), "order", segment.Change{Step: &step}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second) // longer than the back-off
		if id := next(t, a, "order"); id != 1 {
			t.Fatalf("ID = %d, want 1", id)
		}
	})
}

func TestOverflowIsNotIssued(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := node(t, newStore(segment.Row{Tag: "order", MaxID: segment.MaxMaxID - 20, Step: 10}), nil, segment.Config{FixedStep: true})
		ids := drain(t, a, "order", 20)
		increasing(t, ids)
		for range 3 {
			_, err := a.Next(t.Context(), "order")
			wantErr(t, err, leaf.ErrOverflow)
		}
	})
}

// TestDoubtfulAnswers: a store whose answer cannot be right is not believed.
func TestDoubtfulAnswers(t *testing.T) {
	for name, answer := range map[string]segment.Reservation{
		"too long":       {Range: leaf.Range{Lo: 1, Hi: 12}, Step: 10},
		"too short":      {Range: leaf.Range{Lo: 1, Hi: 10}, Step: 10},
		"empty":          {Range: leaf.Range{Lo: 1, Hi: 1}, Step: 10},
		"inverted":       {Range: leaf.Range{Lo: 11, Hi: 1}, Step: 10},
		"negative":       {Range: leaf.Range{Lo: -10, Hi: 0}, Step: 10},
		"past the limit": {Range: leaf.Range{Lo: segment.MaxMaxID - 5, Hi: segment.MaxMaxID + 5}, Step: 10},
		"step 0":         {Range: leaf.Range{Lo: 1, Hi: 11}, Step: 0},
		"step too large": {Range: leaf.Range{Lo: 1, Hi: 11}, Step: segment.MaxStep + 1},
		"zero":           {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(row(10))
				s.set(func(s *store) {
					s.onReserve = func(context.Context, segment.Request, func() (segment.Reservation, error)) (segment.Reservation, error) {
						return answer, nil
					}
				})
				a := node(t, s, nil, segment.Config{MaxWait: time.Second})
				_, err := a.Next(t.Context(), "order")
				wantErr(t, err, leaf.ErrNotReady)
				s.heal()
				time.Sleep(time.Second)
				next(t, a, "order")
			})
		})
	}
}
