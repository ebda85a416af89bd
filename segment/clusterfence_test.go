package segment_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// TestClusterFenceRefuses: a database that lost commits is refused by every node,
// also by one that never served the tag, and one command per node repairs it, without
// a number.
func TestClusterFenceRefuses(t *testing.T) {
	for _, c := range []struct {
		name string
		back segment.Row
	}{
		{"yesterday's dump", segment.Row{Tag: "order", MaxID: 31, Step: 10}},
		{"lowered by one", segment.Row{Tag: "order", MaxID: 200, Step: 10}},
		{"created again", segment.Row{Tag: "order", MaxID: 1, Step: 10}},
		{"restored with a larger step", segment.Row{Tag: "order", MaxID: 1, Step: 100_000}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f, ids := newStore(row(10)), memory.NewFence(), newLedger()
				a := node(t, s, nil, fenced("a", sharing(f), nil))
				ids.add(t, "a", drain(t, a, "order", 200)...)
				closeNode(t, a) // gone; what it issued is known to the fence only
				if s.maxID(t, "order") != 201 || sharing(f).end(t, "order") != 201 {
					t.Fatalf("row %d, fence %d: the test no longer tests what it says", s.maxID(t, "order"), sharing(f).end(t, "order"))
				}
				s.Put(c.back)

				al := newAlarms()
				fresh := []*segment.Allocator{
					node(t, s, nil, fenced("b", sharing(f), al)),
					node(t, s, nil, fenced("c", sharing(f), nil)),
				}
				_, err := fresh[0].Next(t.Context(), "order")
				wantErr(t, err, leaf.ErrRegress)
				if s.maxID(t, "order") < 201 { // else the refused statement has moved the row past every number in use
					_, err = fresh[1].Next(t.Context(), "order")
					wantErr(t, err, leaf.ErrRegress)
				}
				al.want(t, "regress order")
				if text := al.text("regress", "order"); !strings.Contains(text, "cluster fence holds numbers up to 201") {
					t.Errorf("text %q", text)
				}
				for range 3 {
					_, err := fresh[0].Next(t.Context(), "order")
					wantErr(t, err, leaf.ErrRegress)
					time.Sleep(time.Minute)
				}
				for i, n := range fresh {
					maxID, err := n.Repair(t.Context(), "order", 0)
					if err != nil || maxID < 201 {
						t.Fatalf("Repair on node %d = %d, %v; want 201 or more", i, maxID, err)
					}
				}
				al.want(t)
				for i, n := range fresh {
					ids.add(t, fmt.Sprint("fresh ", i), drain(t, n, "order", 100)...)
				}
			})
		})
	}
}

// TestClusterFenceBeforeServe (rules B and C): while the compare-and-set is under
// way, no ID of the range is out and the own fence does not hold it; a range whose
// compare-and-set has no known outcome is dropped.
func TestClusterFenceBeforeServe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newStore(row(10)), sharing(memory.NewFence())
		enter, leave := make(chan struct{}), make(chan error)
		f.set(func(f *shared) {
			f.onSwap = func(_ context.Context, tag string, _ *fence.Entry, _ int64, do func() (fence.Entry, error)) (fence.Entry, error) {
				if tag == probeEntry {
					return do()
				}
				enter <- struct{}{}
				fail := <-leave
				e, err := do()
				return e, errors.Join(err, fail)
			}
		})
		a := node(t, s, nil, fenced("a", f, nil))
		got := make(chan int64, 100)
		go func() {
			for range 15 {
				id, err := a.Next(t.Context(), "order")
				if err != nil {
					t.Error(err)
				}
				got <- id
			}
			close(got)
		}()
		<-enter
		synctest.Wait()
		if len(got) != 0 || a.Mark("order").High != 0 {
			t.Fatalf("%d IDs out and mark %+v before the cluster fence moved", len(got), a.Mark("order"))
		}
		leave <- errDown // it happened, but the reply is lost
		<-enter
		synctest.Wait()
		if len(got) != 0 || a.Mark("order").High != 0 {
			t.Fatalf("%d IDs out and mark %+v of a range whose compare-and-set has no known outcome", len(got), a.Mark("order"))
		}
		f.heal()
		leave <- nil
		var ids []int64
		for id := range got {
			ids = append(ids, id)
		}
		increasing(t, ids)
		if ids[0] != 11 {
			t.Errorf("first ID %d, want 11: [1, 11) was in doubt", ids[0])
		}
		synctest.Wait()
		if m := a.Mark("order"); m.High != f.end(t, "order") || m.High != s.maxID(t, "order") {
			t.Errorf("mark %+v, cluster fence %d, max_id %d", m, f.end(t, "order"), s.maxID(t, "order"))
		}
	})
}

// TestClusterFenceOrder: read, reserve, swap, own fence; and for the return: swap,
// own fence, row (rules C and G).
func TestClusterFenceOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, d := newStore(row(10)), sharing(memory.NewFence()), newDisk()
		a := node(t, s, d, fenced("a", f, nil))
		synctest.Wait()
		var events []string
		f.set(func(f *shared) {
			f.onRead = func(_ context.Context, _ string, do func() (fence.Entry, bool, error)) (fence.Entry, bool, error) {
				events = append(events, "read")
				return do()
			}
			f.onSwap = func(_ context.Context, _ string, old *fence.Entry, end int64, do func() (fence.Entry, error)) (fence.Entry, error) {
				from := "none"
				if old != nil {
					from = fmt.Sprint(old.End)
				}
				events = append(events, fmt.Sprintf("swap %s to %d", from, end))
				return do()
			}
		})
		d.set(func(d *disk) { d.onSync = func() error { events = append(events, "own fence"); return nil } })
		s.set(func(s *store) {
			s.onReserve = func(_ context.Context, _ segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
				events = append(events, "reserve")
				return do()
			}
			s.onReturn = func(_ context.Context, _ string, do func() error) error {
				events = append(events, "row")
				return do()
			}
		})
		next(t, a, "order")
		events = append(events, "id")
		next(t, a, "order")
		synctest.Wait()
		closeNode(t, a)
		want := []string{
			"read", "reserve", "swap none to 11", "own fence", "own fence", "id", // a write of the fence is two syncs
			"read", "reserve", "swap 11 to 21", "own fence", "own fence",
			"swap 21 to 3", "own fence", "own fence", "row",
		}
		if !slices.Equal(events, want) {
			t.Errorf("events %q\nwant   %q", events, want)
		}
		if s.maxID(t, "order") != 3 || f.end(t, "order") != 3 || a.Mark("order").High != 3 {
			t.Errorf("row %d, cluster fence %d, own fence %d; want 3", s.maxID(t, "order"), f.end(t, "order"), a.Mark("order").High)
		}
	})
}

// TestLostRace: of two nodes that load one tag at the same moment the slower one
// drops its range and loads the next one at once, with and without an entry to
// begin with. That is no alarm.
func TestLostRace(t *testing.T) {
	for _, used := range []int{0, 1} {
		t.Run(fmt.Sprintf("%d ranges before", used), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, f, ids, al := newStore(row(10)), memory.NewFence(), newLedger(), newAlarms()
				if used > 0 {
					c := node(t, s, nil, fenced("c", sharing(f), nil))
					ids.add(t, "c", next(t, c, "order"))
				}
				slow := sharing(f)
				a := node(t, s, nil, fenced("a", slow, al))
				b := node(t, s, nil, fenced("b", sharing(f), al))
				synctest.Wait()
				enter, leave := make(chan struct{}), make(chan struct{})
				slow.set(func(f *shared) {
					f.onSwap = func(_ context.Context, _ string, _ *fence.Entry, _ int64, do func() (fence.Entry, error)) (fence.Entry, error) {
						slow.heal()
						close(enter)
						<-leave
						return do()
					}
				})
				start := time.Now()
				got := make(chan int64)
				go func() { got <- next(t, a, "order") }()
				<-enter // a has reserved
				ids.add(t, "b", next(t, b, "order"))
				close(leave)
				ids.add(t, "a", <-got)
				if st := a.Status(); st.Races != 1 || st.Lost != 10 || st.Failures != 0 || st.Regresses != 0 {
					t.Errorf("status %+v, want one race that cost 10 numbers", st)
				}
				if d := time.Since(start); d != 0 {
					t.Errorf("the retry took %v", d)
				}
				al.want(t)
				if h := al.history(); len(h) != 0 {
					t.Errorf("alarms %q", h)
				}
			})
		})
	}
}

// TestRacesAreBounded: a fence that never lets this node win ends in a back-off.
func TestRacesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newStore(row(10)), sharing(memory.NewFence())
		f.set(func(f *shared) {
			f.onSwap = func(context.Context, string, *fence.Entry, int64, func() (fence.Entry, error)) (fence.Entry, error) {
				return fence.Entry{}, fence.ErrMoved
			}
		})
		cfg := fenced("a", f, nil)
		cfg.MaxWait = time.Second
		a := node(t, s, nil, cfg)
		_, err := a.Next(t.Context(), "order")
		wantErr(t, err, leaf.ErrNotReady)
		if n := s.count(); n > 16*15 {
			t.Errorf("%d ranges reserved within a second", n)
		}
	})
}

// TestReturnInTheMiddleOfALoad: another node reads the fence, then this one gives
// numbers back, then the other one reserves them: they lie below what it read, but
// that is no regress.
func TestReturnInTheMiddleOfALoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f, ids, al := newStore(row(10)), memory.NewFence(), newLedger(), newAlarms()
		a := node(t, s, nil, fenced("a", sharing(f), nil))
		ids.add(t, "a", drain(t, a, "order", 5)...)
		synctest.Wait()
		b := node(t, s, nil, fenced("b", sharing(f), al))
		synctest.Wait()
		s.set(func(s *store) {
			s.onReserve = func(_ context.Context, _ segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
				s.heal()
				closeNode(t, a) // b has read the fence
				return do()
			}
		})
		ids.add(t, "b", drain(t, b, "order", 100)...)
		if st := b.Status(); st.Races != 1 || st.Regresses != 0 {
			t.Errorf("status %+v, want one race and no regress", st)
		}
		if h := al.history(); len(h) != 0 {
			t.Errorf("alarms %q", h)
		}
	})
}

// TestReturnUnderTheClusterFence: each step fails or is the last one before a
// crash. The restart repeats nothing and raises no alarm, whoever does it.
func TestReturnUnderTheClusterFence(t *testing.T) {
	type swap = func() (fence.Entry, error)
	for _, c := range []struct {
		name string
		rows int // compare-and-sets that reach the row
		fail func(t *testing.T, s *store, d *disk, f *shared)
	}{
		{"all is well", 1, func(*testing.T, *store, *disk, *shared) {}},
		{"the cluster fence does not answer", 0, func(_ *testing.T, _ *store, _ *disk, f *shared) { f.breakDown() }},
		{"its reply is lost", 0, func(_ *testing.T, _ *store, _ *disk, f *shared) {
			f.onSwap = func(_ context.Context, _ string, _ *fence.Entry, _ int64, do swap) (fence.Entry, error) {
				e, err := do()
				return e, errors.Join(err, errDown)
			}
		}},
		{"it hangs", 0, func(_ *testing.T, _ *store, _ *disk, f *shared) {
			f.onSwap = func(ctx context.Context, _ string, _ *fence.Entry, _ int64, _ swap) (fence.Entry, error) {
				<-ctx.Done()
				return fence.Entry{}, ctx.Err()
			}
		}},
		{"another node has moved it", 0, func(t *testing.T, s *store, _ *disk, f *shared) {
			next(t, node(t, s, nil, fenced("other", sharing(f.Fence), nil)), "order")
		}},
		{"it was wiped", 0, func(_ *testing.T, _ *store, _ *disk, f *shared) { f.Wipe() }},
		{"it was wiped and opened again", 0, func(t *testing.T, s *store, _ *disk, f *shared) {
			f.Wipe()
			node(t, s, nil, fenced("other", sharing(f.Fence), nil))
			synctest.Wait()
		}},
		{"the own fence fails after it", 0, func(_ *testing.T, _ *store, d *disk, _ *shared) {
			d.onSync = func() error { return errDown }
			d.onReplace = func(string) error { return errDown }
		}},
		{"the row fails after both", 0, func(_ *testing.T, s *store, _ *disk, _ *shared) {
			s.onReturn = func(context.Context, string, func() error) error { return errDown }
		}},
		{"the row's reply is lost", 1, func(_ *testing.T, s *store, _ *disk, _ *shared) {
			s.onReturn = func(_ context.Context, _ string, do func() error) error { return errors.Join(do(), errDown) }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, d, f, ids := newStore(row(100)), newDisk(), sharing(memory.NewFence()), newLedger()
				a := node(t, s, d, fenced("a", f, nil))
				ids.add(t, "before", drain(t, a, "order", 42)...)
				synctest.Wait()
				rows := 0
				c.fail(t, s, d, f)
				inner := s.onReturn
				s.set(func(s *store) {
					s.onReturn = func(ctx context.Context, tag string, do func() error) error {
						once := func() error { rows++; return do() }
						if inner != nil {
							return inner(ctx, tag, once)
						}
						return once()
					}
				})
				_ = a.Close(context.Background())
				if rows != c.rows {
					t.Errorf("%d compare-and-sets reached the row, want %d", rows, c.rows)
				}
				s.heal()
				f.heal()
				d.set(func(d *disk) { d.onSync, d.onReplace = nil, nil })
				for name, at := range map[string]*disk{"a": d, "fresh": nil} {
					al := newAlarms()
					n := node(t, s, at, fenced(name, sharing(f.Fence), al))
					ids.add(t, name+" after", drain(t, n, "order", 500)...)
					if text := strings.Join(al.history(), " "); strings.Contains(text, "regress") {
						t.Errorf("node %s: false alarm: %s", name, text)
					}
				}
			})
		})
	}
}

// TestClusterRepair: what the command may do with and without a number.
func TestClusterRepair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newStore(row(10), segment.Row{Tag: "new", MaxID: 1, Step: 10}), sharing(memory.NewFence())
		a := node(t, s, nil, fenced("a", f, nil))
		drain(t, a, "order", 95) // up to 110 with the next range
		synctest.Wait()
		b := node(t, s, nil, fenced("b", sharing(f.Fence), nil))
		for _, c := range []struct {
			name  string
			tag   string
			above int64
			err   error
			text  string
			maxID int64
			fence int64
		}{
			{"no entry", "new", 0, nil, "", 2, 2},
			{"no entry, with a number", "new", 50, nil, "", 51, 51},
			{"below the cluster fence", "order", 109, leaf.ErrConflict, "cluster fence holds numbers of tag \"order\" up to 111", 111, 111},
			{"nothing to repair", "order", 0, nil, "", 112, 112},
			{"above the cluster fence", "order", 500, nil, "", 501, 501},
			{"unknown tag", "nobody", 0, leaf.ErrUnknownTag, "", 0, -1},
			{"unknown tag, with a number", "nobody", 5, leaf.ErrUnknownTag, "", 0, -1},
		} {
			maxID, err := b.Repair(t.Context(), c.tag, c.above)
			if !errors.Is(err, c.err) || c.err != nil && !strings.Contains(err.Error(), c.text) || c.err == nil && maxID != c.maxID {
				t.Errorf("%s: Repair = %d, %v; want %d, %v %q", c.name, maxID, err, c.maxID, c.err, c.text)
			}
			if c.maxID != 0 && s.maxID(t, c.tag) != c.maxID || f.end(t, c.tag) != c.fence {
				t.Errorf("%s: cluster fence %d, want %d, row %d", c.name, f.end(t, c.tag), c.fence, c.maxID)
			}
		}
		if id := next(t, b, "order"); id != 501 {
			t.Errorf("first ID after the repair = %d, want 501", id)
		}
		f.breakDown()
		s.Put(row(10))
		_, err := a.Repair(t.Context(), "order", 0)
		wantErr(t, err, leaf.ErrNotReady)
		_, err = a.Repair(t.Context(), "order", 5000)
		wantErr(t, err, leaf.ErrNotReady)
		if got := s.maxID(t, "order"); got != 1 {
			t.Errorf("max_id = %d after a refused repair", got)
		}
	})
}

// TestRestartsUnderTheClusterFence: nodes race for one tag, stop and start at random
// with all their returns. Nothing repeats, and nobody takes that for a regress.
func TestRestartsUnderTheClusterFence(t *testing.T) {
	const nodes, restarts, step = 4, 30, 5
	s, f, ids, al := newStore(row(step)), memory.NewFence(), newLedger(), newAlarms()
	var races, regresses atomic.Int64
	var all sync.WaitGroup
	for n := range nodes {
		all.Go(func() {
			d := newDisk()
			for range restarts {
				a := node(t, s, d, fenced(fmt.Sprint(n), sharing(f), al))
				for range 1 + rand.IntN(6*step) {
					ids.add(t, fmt.Sprint("node ", n), next(t, a, "order"))
				}
				closeNode(t, a)
				races.Add(a.Status().Races)
				regresses.Add(a.Status().Regresses)
			}
		})
	}
	all.Wait()
	if h := al.history(); regresses.Load() != 0 || len(h) != 0 {
		t.Errorf("%d regresses, alarms %q", regresses.Load(), h)
	}
	if end := sharing(f).end(t, "order"); end > s.maxID(t, "order") {
		t.Errorf("cluster fence %d is above the row %d: the next load would be refused", end, s.maxID(t, "order"))
	}
	t.Logf("%d IDs, %d wasted, %d races", ids.len(), s.maxID(t, "order")-1-int64(ids.len()), races.Load())
}

// TestStatusKnowsTheClusterFence: what a tag knows of the cluster fence is in its status.
func TestStatusKnowsTheClusterFence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, f := newStore(row(10)), sharing(memory.NewFence())
		a := node(t, s, newDisk(), fenced("a", f, newAlarms()))
		next(t, a, "order")
		synctest.Wait()
		if st := a.Snapshot(); len(st) != 1 || st[0].Cluster != f.end(t, "order") || st[0].Cluster == 0 {
			t.Errorf("status %+v, cluster fence %d", st, f.end(t, "order"))
		}
	})
}
