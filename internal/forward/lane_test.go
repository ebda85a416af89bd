package forward_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
	"github.com/leaf-idgen/leaf/internal/forward"
)

// lineup is calls that are made at the same time.
type lineup struct {
	issuer *forward.Issuer
	group  sync.WaitGroup
	mu     sync.Mutex
	ids    []int64
	errs   []error
}

// ask begins a call for n IDs.
func (c *lineup) ask(t *testing.T, ctx context.Context, n int) { //nolint:revive // the context is not that of the test
	t.Helper()
	c.group.Go(func() {
		got, err := c.issuer.NextN(ctx, "order", n)
		c.mu.Lock()
		defer c.mu.Unlock()
		if err != nil {
			c.errs = append(c.errs, err)
			return
		}
		before := len(c.ids)
		for _, r := range got {
			for id := r.Lo; id < r.Hi; id++ {
				c.ids = append(c.ids, id)
			}
		}
		if len(c.ids)-before != n || !slices.IsSorted(c.ids[before:]) {
			t.Errorf("%v, want %d IDs that grow", got, n)
		}
	})
}

// distinct fails unless the callers have got so many IDs, all different.
func (c *lineup) distinct(t *testing.T, want int) {
	t.Helper()
	c.group.Wait()
	slices.Sort(c.ids)
	if len(slices.Compact(slices.Clone(c.ids))) != want || len(c.ids) != want {
		t.Errorf("%d IDs, want %d that are distinct: %v", len(c.ids), want, c.ids)
	}
}

// Calls that come while one is under way go together when it has ended.
func TestCallsGoTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("b", "a", "b")
		var asks atomic.Int64
		c.onAsk = func(context.Context, string) error {
			asks.Add(1)
			time.Sleep(time.Millisecond)
			return nil
		}
		all := &lineup{issuer: c.issuer()}
		want := 0
		for k := range 50 {
			all.ask(t, t.Context(), 1+k%3)
			want += 1 + k%3
			if k == 0 {
				synctest.Wait()
			}
		}
		all.distinct(t, want)
		if asks.Load() != 2 || len(all.errs) != 0 {
			t.Errorf("%d calls of the owner, want 2; errors %v", asks.Load(), all.errs)
		}
		if answered, failed := all.issuer.Forwarded(); answered != 50 || failed != 0 {
			t.Errorf("%d answered, %d failed", answered, failed)
		}
		if _, err := all.issuer.Next(t.Context(), "order"); err != nil || asks.Load() != 3 {
			t.Errorf("%v after %d calls", err, asks.Load())
		}
	})
}

// A call is part of a batch that is sent after the call began: the batch under way has its numbers already.
func TestNoCallJoinsWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("b", "a", "b")
		i := c.issuer()
		c.onAnswered = func() { time.Sleep(time.Millisecond) } // the numbers are taken, and the answer is on its way
		var late int64
		var calls sync.WaitGroup
		calls.Go(func() { _, _ = i.Next(t.Context(), "order") })
		calls.Go(func() { time.Sleep(10 * time.Microsecond); _, _ = i.Next(t.Context(), "order") })
		time.Sleep(1500 * time.Microsecond) // the second one is under way
		other, err := forward.Here(c.nodes["b"], c.nodes["b"].look).Next(t.Context(), "order")
		if err != nil {
			t.Fatal(err)
		}
		calls.Go(func() { late, _ = i.Next(t.Context(), "order") })
		calls.Wait()
		if late <= other {
			t.Errorf("%d was asked for after the answer %d", late, other)
		}
	})
}

// A caller that leaves while it waits takes nothing, and the others are served.
func TestCallerLeavesALane(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("b", "a", "b")
		c.onAsk = func(context.Context, string) error { time.Sleep(100 * time.Millisecond); return nil }
		all := &lineup{issuer: c.issuer()}
		all.ask(t, t.Context(), 1)
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		all.ask(t, short, 7)
		all.ask(t, t.Context(), 1)
		all.distinct(t, 2)
		if len(all.errs) != 1 || !errors.Is(all.errs[0], leaf.ErrNotReady) {
			t.Errorf("errors %v", all.errs)
		}
		if c.next != 3 {
			t.Errorf("the owner has issued up to %d, want 3", c.next)
		}
	})
}

// An owner that waits for its database for as long as it may has time for the calls that wait, too.
func TestSlowOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("b", "a", "b")
		c.onAsk = func(ctx context.Context, _ string) error {
			select {
			case <-time.After(900 * time.Millisecond):
				return nil
			case <-ctx.Done():
				return leaf.ErrNotReady
			}
		}
		all := &lineup{issuer: c.issuer()}
		all.ask(t, t.Context(), 1)
		time.Sleep(100 * time.Millisecond)
		all.ask(t, t.Context(), 1)
		all.distinct(t, 2)
		if c.next != 3 || c.looks != 0 {
			t.Errorf("the owner has issued up to %d, want 3; %d readings of the registry", c.next, c.looks)
		}
	})
}

// When an owner hangs, the calls that wait look for another one, too, whichever call of theirs it was that got no answer.
func TestOwnerHangs(t *testing.T) {
	for name, answers := range map[string]int{"the first call": 0, "a call of several": 1} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster("b", "a", "b", "c")
				asked := 0
				c.onAsk = func(ctx context.Context, to string) error {
					if asked++; to == "b" && asked > answers {
						<-ctx.Done()
						return leaf.ErrNotReady
					}
					time.Sleep(time.Millisecond)
					return nil
				}
				all, begun := &lineup{issuer: c.issuer()}, time.Now()
				for range 3 {
					all.ask(t, t.Context(), 1)
				}
				time.Sleep(500 * time.Millisecond)
				c.own("c")
				all.ask(t, t.Context(), 1)
				all.distinct(t, 4)
				if took := time.Since(begun); took > 1100*time.Millisecond {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

// An owner that has no ID at all, as while its database is away, makes no caller wait again and again.
func TestOwnerHasNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("b", "a", "b")
		c.onAsk = func(context.Context, string) error {
			time.Sleep(900 * time.Millisecond)
			return leaf.ErrExhausted
		}
		all, begun := &lineup{issuer: c.issuer()}, time.Now()
		for range 9 {
			all.ask(t, t.Context(), 1)
		}
		all.distinct(t, 0)
		if took := time.Since(begun); took > 2*time.Second || slices.ContainsFunc(all.errs, func(err error) bool { return !errors.Is(err, leaf.ErrExhausted) }) {
			t.Errorf("after %v: %v", took, all.errs)
		}
	})
}

// No call of an owner is for more IDs than a call may ask for.
func TestNoCallIsOverfull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers, each = leaf.MaxBatch/100 + 50, 100
		c := newCluster("b", "a", "b")
		c.onAsk = func(context.Context, string) error { time.Sleep(time.Millisecond); return nil }
		all := &lineup{issuer: c.issuer()}
		for range callers {
			all.ask(t, t.Context(), each)
		}
		all.distinct(t, callers*each)
		if c.largest != leaf.MaxBatch {
			t.Errorf("a call was for %d IDs", c.largest)
		}
	})
}

// A call for many IDs takes the owner long. It goes by itself, so that calls for few wait neither for it nor for its IDs.
func TestLargeCallGoesByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("b", "a", "b")
		c.onCount = func(n int) error {
			if n > 100 {
				time.Sleep(900 * time.Millisecond)
			}
			return nil
		}
		all := &lineup{issuer: c.issuer()}
		all.ask(t, t.Context(), 101)
		synctest.Wait()
		begun := time.Now()
		for range 2 {
			if _, err := all.issuer.Next(t.Context(), "order"); err != nil || time.Since(begun) != 0 {
				t.Errorf("%v after %v", err, time.Since(begun))
			}
		}
		all.distinct(t, 101)
	})
}

// Large calls for a tag that its owner does not answer for leave streams to other tags, and to small calls for the same tag. One
// that finds no room looks for another owner after a while.
func TestFewLargeCallsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster("b", "a", "b", "c")
		var asks atomic.Int64
		release := make(chan struct{})
		c.onCount = func(n int) error {
			if n > 100 {
				asks.Add(1)
				<-release
			}
			return nil
		}
		all := &lineup{issuer: c.issuer()}
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		for range 4 {
			all.ask(t, t.Context(), 101)
			synctest.Wait()
		}
		all.ask(t, short, 101)
		for range 3 {
			all.ask(t, t.Context(), 101)
		}
		synctest.Wait()
		if asks.Load() != 4 {
			t.Errorf("%d large calls at once, want 4", asks.Load())
		}
		if _, err := all.issuer.Next(t.Context(), "order"); err != nil {
			t.Errorf("a small call: %v", err)
		}
		time.Sleep(1100 * time.Millisecond) // an attempt and a pause
		close(release)
		all.distinct(t, 7*101)
		if len(all.errs) != 1 || !errors.Is(all.errs[0], leaf.ErrNotReady) {
			t.Errorf("errors %v, want that of the caller who has left", all.errs)
		}
		if asks.Load() != 7 || c.looks != 4 { // one by the caller who has left
			t.Errorf("%d calls of the owner and %d readings of the registry, want 7 and 4", asks.Load(), c.looks)
		}
	})
}

// An owner that has not the IDs of all calls together has those of each: no caller gets an error for what others want.
func TestTooManyTogether(t *testing.T) {
	for name, refusal := range map[string]error{"in time": leaf.ErrExhausted, "at all": leaf.ErrOverflow} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster("b", "a", "b")
				asks := 0
				c.onCount = func(n int) error {
					time.Sleep(time.Millisecond)
					if asks++; n > 4 {
						return refusal
					}
					return nil
				}
				all := &lineup{issuer: c.issuer()}
				for range 60 {
					all.ask(t, t.Context(), 1)
				}
				all.ask(t, t.Context(), 5)
				all.distinct(t, 60)
				if len(all.errs) != 1 || !errors.Is(all.errs[0], refusal) {
					t.Errorf("errors %v, want that of the call for 5", all.errs)
				}
				if asks > 40 {
					t.Errorf("%d calls of the owner", asks)
				}
			})
		})
	}
}

// What the owner says of calls that go together, or what panics there, is said to each of them.
func TestErrorOfALane(t *testing.T) {
	for name, tt := range map[string]struct {
		fail func() error
		is   func(error) bool
	}{
		"the owner says": {func() error { return leaf.ErrUnknownTag }, func(err error) bool { return errors.Is(err, leaf.ErrUnknownTag) }},
		"a panic": {func() error { panic("planted") }, func(err error) bool {
			p, ok := errors.AsType[*bounded.PanicError](err)
			return ok && p.Cause == "planted" && leaf.ClassOf(err).Err == nil // so a server logs it
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster("b", "a", "b")
				var asks atomic.Int64
				c.onAsk = func(context.Context, string) error {
					time.Sleep(time.Millisecond)
					if asks.Add(1) == 2 {
						return tt.fail()
					}
					return nil
				}
				all := &lineup{issuer: c.issuer()}
				for range 5 {
					all.ask(t, t.Context(), 1)
				}
				all.distinct(t, 1)
				if len(all.errs) != 4 || slices.ContainsFunc(all.errs, func(err error) bool { return !tt.is(err) }) {
					t.Errorf("errors %v", all.errs)
				}
				if id, err := all.issuer.Next(t.Context(), "order"); err != nil || id != 2 {
					t.Errorf("afterwards: %d, %v", id, err)
				}
			})
		})
	}
}
