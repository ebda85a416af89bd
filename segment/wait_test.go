package segment_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/segment"
)

// TestBurstOnSmallStep is the most reported defect of the original: 50 callers, a
// step of 10 and a store that takes 20 ms get errors. Here they wait.
func TestBurstOnSmallStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		s.set(func(s *store) {
			s.onReserve = func(_ context.Context, _ segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
				time.Sleep(20 * time.Millisecond)
				return do()
			}
		})
		a := node(t, s, nil, segment.Config{})
		ids := newLedger()
		var callers sync.WaitGroup
		for range 50 {
			callers.Go(func() {
				for range 200 {
					id, err := a.Next(t.Context(), "order")
					if err != nil {
						t.Error(err)
						return
					}
					ids.add(t, "caller", id)
				}
			})
		}
		callers.Wait()
		if ids.len() != 10_000 {
			t.Fatalf("%d IDs, want 10000", ids.len())
		}
	})
}

// TestDeadlines: a call ends at its own deadline or at MaxWait, whichever is first,
// with an error that says "retry" and keeps the store's words to itself.
func TestDeadlines(t *testing.T) {
	for _, c := range []struct {
		name  string
		ctx   time.Duration
		stock bool
		want  error
		after time.Duration
	}{
		{"never loaded, MaxWait", time.Hour, false, leaf.ErrNotReady, 700 * time.Millisecond},
		{"never loaded, own deadline", 300 * time.Millisecond, false, leaf.ErrNotReady, 300 * time.Millisecond},
		{"stock used up, MaxWait", time.Hour, true, leaf.ErrExhausted, 700 * time.Millisecond},
		{"stock used up, own deadline", 300 * time.Millisecond, true, leaf.ErrExhausted, 300 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStore(row(1))
				a := node(t, s, nil, segment.Config{MaxWait: 700 * time.Millisecond})
				if c.stock {
					next(t, a, "order")
				}
				s.breakDown()
				ctx, cancel := context.WithTimeout(t.Context(), c.ctx)
				defer cancel()
				start := time.Now()
				_, err := a.Next(ctx, "order")
				wantErr(t, err, c.want)
				if got := time.Since(start); got != c.after {
					t.Errorf("failed after %v, want %v", got, c.after)
				}
				if !leaf.ClassOf(err).Retryable {
					t.Errorf("error %v does not invite to retry", err)
				}
				if !errors.Is(err, errDown) {
					t.Errorf("error %v lost its cause", err)
				}
				if !errors.Is(segment.Cause(err), errDown) {
					t.Errorf("the cause is %v", segment.Cause(err))
				}
				if text := err.Error(); text != c.want.Error()+`: no range for tag "order" arrived in time` {
					t.Errorf("text %q shows a client more than it should see", text)
				}
			})
		})
	}
}

// TestCancelledCallerLeaves without disturbing the load that others wait for.
func TestCancelledCallerLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		release := make(chan struct{})
		s.set(func(s *store) {
			s.onReserve = func(_ context.Context, _ segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
				<-release
				return do()
			}
		})
		a := node(t, s, nil, segment.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan error, 1)
		go func() { _, err := a.Next(ctx, "order"); left <- err }()
		got := make(chan int64, 1)
		go func() { id, _ := a.Next(t.Context(), "order"); got <- id }()
		synctest.Wait()
		cancel()
		wantErr(t, <-left, context.Canceled)
		close(release)
		if id := <-got; id != 1 {
			t.Fatalf("the other caller got %d, want 1", id)
		}
	})
}

// TestBackOff: a store that refuses is asked less and less often, and serves again
// within the longest back-off once it answers.
func TestBackOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(1))
		a := node(t, s, nil, segment.Config{MaxWait: time.Minute})
		next(t, a, "order")
		s.breakDown()
		before := s.count()
		got := make(chan error, 1)
		go func() { _, err := a.Next(t.Context(), "order"); got <- err }()
		time.Sleep(10 * time.Second)
		if n := s.count() - before; n < 40 || n > 90 {
			t.Errorf("%d attempts in 10 s, want about one per 125 to 250 ms", n)
		}
		s.heal()
		start := time.Now()
		if err := <-got; err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d > 250*time.Millisecond {
			t.Errorf("served %v after the store answered, want at most 250 ms", d)
		}
	})
}

// TestStoreDownAtStart: alive, not ready (not "unknown tag"), and serving within a
// second of the store's first answer (guarantee 13).
func TestStoreDownAtStart(t *testing.T) {
	long.Plain(t)
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		s.breakDown()
		a := node(t, s, nil, segment.Config{})
		if st := a.Status(); st.Ready || len(st.Reasons) == 0 {
			t.Fatalf("status %+v, want not ready with a reason", st)
		}
		_, err := a.Next(t.Context(), "order")
		wantErr(t, err, leaf.ErrNotReady)
		_, err = a.Next(t.Context(), "no such tag")
		wantErr(t, err, leaf.ErrNotReady)

		time.Sleep(time.Hour)
		s.heal()
		start := time.Now()
		for _, err = a.Next(t.Context(), "order"); err != nil; _, err = a.Next(t.Context(), "order") {
			wantErr(t, err, leaf.ErrNotReady)
		}
		if d := time.Since(start); d > 500*time.Millisecond {
			t.Errorf("served %v after the store answered, want at most 500 ms", d)
		}
		synctest.Wait()
		if st := a.Status(); !st.Ready || len(st.Reasons) != 0 {
			t.Errorf("status %+v, want ready", st)
		}
	})
}

// TestHungLoad: calls that never return, or ignore their deadline, cost their tag a
// deadline each, and what they return later is dropped.
func TestHungLoad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		release := make(chan struct{})
		hung := 0
		s.set(func(s *store) {
			s.onReserve = func(_ context.Context, _ segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
				s.mu.Lock()
				hung++
				first := hung == 1
				s.mu.Unlock()
				if !first {
					return do()
				}
				r, err := do() // the row moves, the answer comes much too late
				<-release
				return r, err
			}
		})
		a := node(t, s, nil, segment.Config{MaxWait: time.Minute, FixedStep: true})
		start := time.Now()
		if id := next(t, a, "order"); id != 11 {
			t.Fatalf("ID = %d, want 11: the first range is lost", id)
		}
		if d := time.Since(start); d > 3*time.Second {
			t.Errorf("a hung call held its tag for %v, want the deadline of 2 s, the grace and a back-off", d)
		}
		if n := a.Status().Abandoned; n != 1 {
			t.Errorf("%d calls abandoned, want 1", n)
		}
		close(release)
		synctest.Wait()
		ids := drain(t, a, "order", 100)
		increasing(t, append([]int64{11}, ids...))
	})
}

// TestManyHungCallsAreBounded: when as many calls hang as may be abandoned, no more
// are made until one returns.
func TestManyHungCallsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		release := make(chan struct{})
		s.set(func(s *store) {
			s.onReserve = func(context.Context, segment.Request, func() (segment.Reservation, error)) (segment.Reservation, error) {
				<-release
				return segment.Reservation{}, errDown
			}
		})
		a := node(t, s, nil, segment.Config{MaxLoads: 3})
		deadline := time.Now().Add(time.Minute)
		for time.Now().Before(deadline) {
			_, err := a.Next(t.Context(), "order")
			wantErr(t, err, leaf.ErrNotReady)
		}
		if n := s.count(); n != 3 {
			t.Errorf("%d calls hang, want no more than MaxLoads = 3", n)
		}
		s.heal()
		close(release)
		time.Sleep(time.Second)
		next(t, a, "order")
	})
}

func TestPanickingStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		n := 0
		s.set(func(s *store) {
			s.onReserve = func(_ context.Context, _ segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
				if n++; n < 5 {
					panic("driver bug")
				}
				return do()
			}
		})
		a := node(t, s, nil, segment.Config{})
		if id := next(t, a, "order"); id != 1 {
			t.Fatalf("ID = %d, want 1", id)
		}
	})
}

// TestIsolation: one tag's row is locked for 30 s; the others do not notice.
func TestIsolation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10), segment.Row{Tag: "locked", MaxID: 1, Step: 10})
		s.set(func(s *store) {
			s.onReserve = func(ctx context.Context, req segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
				if req.Tag == "locked" {
					<-ctx.Done()
					return segment.Reservation{}, ctx.Err()
				}
				return do()
			}
		})
		a := node(t, s, nil, segment.Config{})
		for range 10 {
			go func() {
				for range 30 {
					_, _ = a.Next(t.Context(), "locked")
				}
			}()
		}
		start := time.Now()
		for time.Since(start) < 30*time.Second {
			before := time.Now()
			next(t, a, "order")
			if d := time.Since(before); d > 0 {
				t.Fatalf("a call for another tag took %v", d)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}

// TestStarvingTagsAreBounded: 10,000 tags with callers on a dead store hold no
// goroutine but their callers', and the store sees a few attempts a second.
func TestStarvingTagsAreBounded(t *testing.T) {
	long.Plain(t)
	const tags = 3_000
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		for i := range tags {
			s.Put(segment.Row{Tag: fmt.Sprint("tag-", i), MaxID: 1, Step: 1})
		}
		a := node(t, s, nil, segment.Config{MaxWait: time.Minute})
		s.breakDown()
		s.set(func(s *store) {
			s.onReserve = func(context.Context, segment.Request, func() (segment.Reservation, error)) (segment.Reservation, error) {
				time.Sleep(20 * time.Millisecond) // a refusal takes its time
				return segment.Reservation{}, errDown
			}
		})
		var callers sync.WaitGroup
		for i := range tags {
			callers.Go(func() {
				if _, err := a.Next(t.Context(), fmt.Sprint("tag-", i)); err != nil {
					t.Error(err)
				}
			})
		}
		time.Sleep(10 * time.Second)
		if n := runtime.NumGoroutine(); n > tags+100 {
			t.Errorf("%d goroutines for %d callers", n, tags)
		}
		if n := s.count(); n > 200 {
			t.Errorf("%d attempts in 10 s on a dead store", n)
		}
		s.heal()
		start := time.Now()
		callers.Wait()
		if d := time.Since(start); d > 500*time.Millisecond {
			t.Errorf("all served %v after the store answered, want at most 500 ms", d)
		}
	})
}

// TestUnknownTagsAreBounded: names that do not exist cost a bounded number of
// waiting places, and leave nothing behind.
func TestUnknownTagsAreBounded(t *testing.T) {
	long.Plain(t)
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		s.breakDown()
		a := node(t, s, nil, segment.Config{})
		var callers sync.WaitGroup
		for i := range 10_000 {
			callers.Go(func() {
				_, err := a.Next(t.Context(), fmt.Sprint("unknown-", i))
				wantErr(t, err, leaf.ErrNotReady)
			})
		}
		callers.Wait()
		s.heal()
		time.Sleep(time.Second)
		next(t, a, "order")
		_, err := a.Next(t.Context(), "unknown-1")
		wantErr(t, err, leaf.ErrUnknownTag)
		if st := a.Status(); st.Tags != 1 {
			t.Errorf("%d tags in the table, want 1", st.Tags)
		}
	})
}

// TestUnknownTagsDoNotDelayOthers: callers ask for thousands of names that do not exist. A tag
// of the table gets its first range before they are looked up.
func TestUnknownTagsDoNotDelayOthers(t *testing.T) {
	long.Plain(t)
	synctest.Test(t, func(t *testing.T) {
		const call = 5 * time.Millisecond
		s := newStore(row(10))
		s.set(func(s *store) {
			s.onLookup = func(context.Context, string) error { time.Sleep(call); return nil }
			s.onReserve = func(_ context.Context, _ segment.Request, do func() (segment.Reservation, error)) (segment.Reservation, error) {
				time.Sleep(call)
				return do()
			}
		})
		a := node(t, s, nil, segment.Config{})
		synctest.Wait() // the first reading has the table
		var callers sync.WaitGroup
		for i := range 4096 {
			callers.Go(func() { _, _ = a.Next(t.Context(), fmt.Sprint("unknown-", i)) })
		}
		time.Sleep(call / 2)
		start := time.Now()
		next(t, a, "order")
		if d := time.Since(start); d > 4*call {
			t.Errorf("the first ID of a tag took %v behind look-ups of %v each", d, call)
		}
		callers.Wait()
	})
}

// refuser is an Admission that lets no request wait.
type refuser struct{ asked int }

var errRefused = errors.New("too many wait")

func (r *refuser) Admit() error { r.asked++; return errRefused }

// TestAsksBeforeItWaits: a call that must wait asks whether it may before a load is wanted
// for it, and an ID in stock needs no leave.
func TestAsksBeforeItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, r := newStore(row(10)), &refuser{}
		a := node(t, s, nil, segment.Config{})
		ctx := context.WithValue(t.Context(), leaf.AdmissionKey{}, r)
		for range 2 {
			if _, err := a.Next(ctx, "order"); !errors.Is(err, errRefused) {
				t.Errorf("a call that must wait: %v", err)
			}
		}
		if synctest.Wait(); r.asked != 2 || s.maxID(t, "order") != 1 {
			t.Errorf("asked %d times, row at %d; want 2 and no load", r.asked, s.maxID(t, "order"))
		}
		next(t, a, "order")
		if _, err := a.Next(ctx, "order"); err != nil || r.asked != 2 {
			t.Errorf("an ID in stock: %v, asked %d times", err, r.asked-2)
		}
	})
}

// TestNoLoadForACallerThatLeft: a call that cannot wait asks the store for nothing, or
// callers that are rejected would keep the store from those who wait.
func TestNoLoadForACallerThatLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(row(10))
		a := node(t, s, nil, segment.Config{})
		over, cancel := context.WithCancel(t.Context())
		cancel()
		for range 3 {
			_, err := a.Next(over, "order")
			wantErr(t, err, leaf.ErrNotReady)
			wantErr(t, err, context.Canceled)
			synctest.Wait()
		}
		if got := s.count(); got != 0 {
			t.Errorf("%d ranges were reserved for callers that had left", got)
		}
		next(t, a, "order")
		if _, err := a.Next(over, "order"); err != nil {
			t.Errorf("an ID in stock needs no wait: %v", err)
		}
	})
}

// TestWaitingRoomEmpties: callers that leave while their look-up hangs leave nothing
// behind, however many names they asked for.
func TestWaitingRoomEmpties(t *testing.T) {
	long.Plain(t)
	synctest.Test(t, func(t *testing.T) {
		s := newStore()
		s.set(func(s *store) {
			s.onLookup = func(ctx context.Context, _ string) error { <-ctx.Done(); return ctx.Err() }
		})
		a := node(t, s, nil, segment.Config{SyncInterval: time.Hour, MaxLoads: 1000, MaxWait: 100 * time.Millisecond, LoadTimeout: time.Second})
		for round := range 6 {
			for i := range 900 {
				go func() { _, _ = a.Next(t.Context(), fmt.Sprint(round, " ", i)) }()
			}
			time.Sleep(3 * time.Second)
		}
		s.heal()
		create(t, s, "fresh", 1)
		next(t, a, "fresh")
	})
}
