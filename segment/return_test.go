package segment_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// TestReturn: what a clean stop returns to the row, by what was in memory.
func TestReturn(t *testing.T) {
	for _, c := range []struct {
		name  string
		use   int
		other func(t *testing.T, s *store) // what another node does before the stop
		want  int64                        // max_id after the stop
		mark  int64
	}{
		{"rest of the only range", 5, nil, 6, 6},
		{"rest and the loaded next range", 50, nil, 51, 51},
		{"all of a range used, the next whole", 100, nil, 101, 101},
		{"nothing used", 0, nil, 1, 0},
		{"another node reserved after us: lost", 50, func(t *testing.T, s *store) {
			if _, err := s.Store.Reserve(t.Context(), segment.Request{Tag: "order", Min: 1, Max: 10}); err != nil {
				t.Fatal(err)
			}
		}, 211, 51},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, d := newStore(row(100)), newDisk()
				a := node(t, s, d, segment.Config{FixedStep: true})
				drain(t, a, "order", c.use)
				synctest.Wait()
				if c.other != nil {
					c.other(t, s)
				}
				closeNode(t, a)
				if got := s.maxID(t, "order"); got != c.want {
					t.Errorf("max_id = %d after the stop, want %d", got, c.want)
				}
				if got := a.Mark("order").High; got != c.mark {
					t.Errorf("fence = %d after the stop, want %d", got, c.mark)
				}
				if c.use > 0 && c.other == nil {
					b := node(t, s, d, segment.Config{FixedStep: true})
					if id := next(t, b, "order"); id != int64(c.use+1) {
						t.Errorf("first ID after the restart = %d, want %d", id, c.use+1)
					}
				}
			})
		})
	}
}

// TestReturnAroundSomebodyElsesRange: only the range that ends at max_id can go
// back, and the fence goes down to what was issued, not merely to the row: the
// other node may give its own range back afterwards without a false alarm.
func TestReturnAroundSomebodyElsesRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, ids := newStore(row(100)), newDisk(), newLedger()
		fixed := segment.Config{FixedStep: true}
		a := node(t, s, d, fixed)
		ids.add(t, "a", drain(t, a, "order", 5)...) // [1, 101)
		b := node(t, s, nil, segment.Config{FixedStep: true, NodeID: "node-2"})
		ids.add(t, "b", drain(t, b, "order", 5)...)  // [101, 201)
		ids.add(t, "a", drain(t, a, "order", 20)...) // and a has [201, 301) next
		synctest.Wait()
		closeNode(t, a)
		if got := s.maxID(t, "order"); got != 201 {
			t.Fatalf("max_id = %d, want 201", got)
		}
		closeNode(t, b)
		if got := s.maxID(t, "order"); got != 106 {
			t.Fatalf("max_id = %d, want 106", got)
		}
		a = node(t, s, d, fixed)
		ids.add(t, "a again", drain(t, a, "order", 300)...)
	})
}

// TestReturnMeetsStragglers: callers take IDs as fast as they can while the node
// stops. Whoever got an ID got one below the tail that went back, which the next
// round issues.
func TestReturnMeetsStragglers(t *testing.T) {
	const rounds, callers = 8, 3
	s, d := newStore(row(1_000_000)), newDisk()
	var all []int64
	for range rounds {
		a := node(t, s, d, segment.Config{FixedStep: true})
		next := make([][]int64, callers)
		running := make(chan struct{}, callers)
		var done sync.WaitGroup
		for c := range callers {
			done.Go(func() {
				tag := a.Tag("order")
				for i := 0; ; i++ {
					if c == 0 {
						ranges, err := tag.NextN(t.Context(), 7)
						if err != nil {
							wantErr(t, err, leaf.ErrNotReady)
							break
						}
						for _, r := range ranges {
							for id := r.Lo; id < r.Hi; id++ {
								next[c] = append(next[c], id)
							}
						}
					} else {
						id, err := tag.Next(t.Context())
						if err != nil {
							wantErr(t, err, leaf.ErrNotReady)
							break
						}
						next[c] = append(next[c], id)
					}
					if i == 100 {
						running <- struct{}{}
					}
				}
			})
		}
		for range callers {
			<-running
		}
		closeNode(t, a)
		done.Wait()
		for _, ids := range next {
			increasing(t, ids)
			all = append(all, ids...)
		}
	}
	slices.Sort(all)
	increasing(t, all)
	if waste := s.maxID(t, "order") - int64(len(all)); waste > rounds*30 {
		t.Errorf("%d numbers lost in %d clean restarts", waste, rounds)
	}
}

// TestShutMeetsATake: a caller takes an ID at the very moment at which the chunk is
// shut. The ID is the caller's, or the tail's, never both.
func TestShutMeetsATake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ids := newStore(row(100)), newLedger()
		d := newDisk()
		a := node(t, s, d, segment.Config{FixedStep: true})
		ids.add(t, "before", drain(t, a, "order", 3)...)
		synctest.Wait()
		taken := 0
		defer segment.SetDuringShut(func() {
			if taken++; taken == 1 {
				ids.add(t, "during", next(t, a, "order"))
			}
		})()
		closeNode(t, a)
		if taken < 2 {
			t.Fatalf("the chunk was looked at %d times while it was shut, want a second look after the take", taken)
		}
		if at := s.maxID(t, "order"); at != 5 {
			t.Errorf("max_id = %d after the stop, want 5", at)
		}
		b := node(t, s, d, segment.Config{FixedStep: true})
		ids.add(t, "after", drain(t, b, "order", 20)...)
	})
}

// TestStopWhileALoadHangs: Close does not wait for ever for the load of a next range,
// and then must not lower the row: the load may still move it.
func TestStopWhileALoadHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, d, ids := newStore(row(100)), newDisk(), newLedger()
		a := newNode(t, s, d, segment.Config{FixedStep: true, LoadTimeout: time.Minute})
		if err := a.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		ids.add(t, "before", drain(t, a, "order", 5)...)
		hung, release := make(chan struct{}), make(chan struct{})
		s.set(func(s *store) {
			s.onReserve = func(_ context.Context, _ segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
				close(hung)
				<-release
				return do()
			}
			s.onReturn = func(_ context.Context, _ string, do func() error) error {
				t.Error("numbers are returned while a load is under way")
				return do()
			}
		})
		ids.add(t, "before", drain(t, a, "order", 10)...)
		<-hung
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		wantErr(t, a.Close(ctx), context.DeadlineExceeded)
		if at := s.maxID(t, "order"); at != 101 {
			t.Errorf("max_id = %d after the stop, want 101", at)
		}
		close(release)
		synctest.Wait()
		s.heal()
		b := node(t, s, d, segment.Config{FixedStep: true})
		ids.add(t, "after", drain(t, b, "order", 300)...)
	})
}

// TestHandleAfterReturn: a handle that is older than its tag shares the tag's chunk.
// After a stop it issues nothing of the tail that went back.
func TestHandleAfterReturn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		a := node(t, s, newDisk(), segment.Config{FixedStep: true, SyncInterval: time.Hour})
		h := a.Tag("order")
		s.Put(row(100))
		if id, err := h.Next(t.Context()); id != 1 || err != nil {
			t.Fatalf("got %d, %v", id, err)
		}
		closeNode(t, a)
		if got := s.maxID(t, "order"); got != 2 {
			t.Fatalf("max_id = %d after the stop, want 2", got)
		}
		id, err := h.Next(t.Context())
		if err == nil {
			t.Errorf("ID %d was issued after it had been returned", id)
		}
	})
}

// TestReturnFailsAtEachStep: the stop fails or the process dies before, at and
// after each step of rule G. The restart repeats nothing and raises no alarm.
func TestReturnFailsAtEachStep(t *testing.T) {
	broken := errors.New("broken")
	for _, c := range []struct {
		name string
		sent int // compare-and-sets that reach the store
		fail func(s *store, d *disk)
	}{
		{"died before the fence was lowered", 0, func(_ *store, d *disk) {
			d.onSync = func() error { return broken }
			d.onReplace = func(string) error { return broken }
		}},
		{"died between fence and row", 0, func(s *store, _ *disk) {
			s.onReturn = func(context.Context, string, func() error) error { return broken }
		}},
		{"row lowered, reply lost", 1, func(s *store, _ *disk) {
			s.onReturn = func(_ context.Context, _ string, do func() error) error {
				return errors.Join(do(), broken)
			}
		}},
		{"row lowered, no reply at all", 1, func(s *store, _ *disk) {
			s.onReturn = func(ctx context.Context, _ string, do func() error) error {
				err := do()
				<-ctx.Done()
				return errors.Join(err, ctx.Err())
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, d, ids := newStore(row(100)), newDisk(), newLedger()
				a := node(t, s, d, segment.Config{FixedStep: true})
				ids.add(t, "before", drain(t, a, "order", 42)...)
				synctest.Wait()
				sent := 0
				s.set(func(s *store) { d.set(func(d *disk) { c.fail(s, d) }) })
				inner := s.onReturn
				s.set(func(s *store) {
					s.onReturn = func(ctx context.Context, tag string, do func() error) error {
						once := func() error { sent++; return do() }
						if inner != nil {
							return inner(ctx, tag, once)
						}
						return once()
					}
				})
				_ = a.Close(context.Background())
				if sent != c.sent {
					t.Errorf("%d compare-and-sets reached the store, want %d", sent, c.sent)
				}
				s.heal()
				d.set(func(d *disk) { d.onSync, d.onReplace = nil, nil })
				a = node(t, s, d, segment.Config{FixedStep: true})
				ids.add(t, "after", drain(t, a, "order", 500)...)
				if a.Mark("order").Latched {
					t.Error("false alarm")
				}
			})
		})
	}
}

// TestLatchedTagIsNotReturned even if the refused statement happened to move the
// row to exactly the end of the range in stock.
func TestLatchedTagIsNotReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		a := node(t, s, nil, segment.Config{FixedStep: true})
		next(t, a, "order") // [1, 11)
		s.Put(row(10))
		next(t, a, "order") // asks for the next range, which is [1, 11) again
		synctest.Wait()
		if m := a.Mark("order"); !m.Latched || s.maxID(t, "order") != 11 {
			t.Fatalf("mark %+v, max_id %d: the test no longer tests what it says", m, s.maxID(t, "order"))
		}
		closeNode(t, a)
		if got := s.maxID(t, "order"); got != 11 || !a.Mark("order").Latched {
			t.Errorf("max_id = %d, mark %+v; want 11 and still latched", got, a.Mark("order"))
		}
	})
}

func TestKeepUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(100))
		a := node(t, s, nil, segment.Config{KeepUnused: true})
		drain(t, a, "order", 5)
		closeNode(t, a)
		if got := s.maxID(t, "order"); got != 101 {
			t.Errorf("max_id = %d, want 101", got)
		}
	})
}

// TestRestarts: two nodes restart at random under load. Nothing repeats, and a
// clean restart wastes less than one step.
func TestRestarts(t *testing.T) {
	const restarts, step = 100, 50
	s, ids := newStore(row(step)), newLedger()
	var nodes sync.WaitGroup
	for n := range 2 {
		nodes.Go(func() {
			d := newDisk()
			for range restarts {
				a := node(t, s, d, segment.Config{NodeID: fmt.Sprint(n), FixedStep: true})
				for range 1 + rand.IntN(3*step) {
					ids.add(t, fmt.Sprint("node ", n), next(t, a, "order"))
				}
				closeNode(t, a)
			}
		})
	}
	nodes.Wait()
	waste := s.maxID(t, "order") - 1 - int64(ids.len())
	if waste >= 2*restarts*step {
		t.Errorf("%d numbers wasted in %d restarts of step %d", waste, 2*restarts, step)
	}
	t.Logf("%d IDs, %d wasted", ids.len(), waste)
}

// TestCloseIsBounded: a load that does not end costs Close no more than its
// context, and a call that waits is let go at once.
func TestCloseIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		release := make(chan struct{})
		defer close(release)
		s.set(func(s *store) {
			s.onReserve = func(context.Context, segment.Request, func() (segment.Reservation, error)) (segment.Reservation, error) {
				<-release
				return segment.Reservation{}, errDown
			}
		})
		router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: s}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		a, err := segment.New(router, newDisk(), segment.Config{NodeID: "n", MaxWait: time.Minute, LoadTimeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := make(chan error, 1)
		go func() { _, err := a.Next(t.Context(), "order"); got <- err }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		err = a.Close(ctx)
		wantErr(t, err, context.DeadlineExceeded)
		if d := time.Since(start); d > 3*time.Second {
			t.Errorf("Close took %v, its context allows 3 s", d)
		}
		wantErr(t, a.Close(t.Context()), nil)
		wantErr(t, <-got, leaf.ErrNotReady)
		_, err = a.Next(t.Context(), "order")
		wantErr(t, err, leaf.ErrNotReady)
	})
}

// TestStartStopStress: Close at any moment leaves no goroutine (goleak watches).
func TestStartStopStress(t *testing.T) {
	for range 100 {
		s := newStore(row(3))
		a := node(t, s, nil, segment.Config{})
		var callers sync.WaitGroup
		for range 3 {
			callers.Go(func() {
				for {
					if _, err := a.Next(t.Context(), "order"); err != nil {
						return
					}
				}
			})
		}
		callers.Go(func() { closeNode(t, a) })
		callers.Go(func() { closeNode(t, a) })
		callers.Wait()
	}
}
