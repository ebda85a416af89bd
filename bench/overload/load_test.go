package main

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// shop is a node that answers after a while; it never has more than width customers in
// service, and rejects the request that would be one too many.
type shop struct {
	service time.Duration
	width   int64
	inside  atomic.Int64
	next    atomic.Int64
	again   int64 // repeats the ID after so many, if above 0
	opened  atomic.Int64
	closed  atomic.Int64
}

func (s *shop) dial() line {
	s.opened.Add(1)
	return (*counter)(s)
}

type counter shop

func (c *counter) ask(_ string, deadline time.Time) reply {
	if c.inside.Add(1) > c.width {
		c.inside.Add(-1)
		return reply{what: rejected, hint: time.Second}
	}
	defer c.inside.Add(-1)
	if left := time.Until(deadline); left < c.service {
		time.Sleep(left)
		return reply{what: late}
	}
	time.Sleep(c.service)
	id := c.next.Add(1)
	if c.again > 0 {
		id %= c.again
	}
	return reply{what: issued, id: id}
}

func (c *counter) close() { c.closed.Add(1) }

// newLoad asks for one tag, so that an ID is repeated if its number is.
func newLoad(s *shop) *load {
	return &load{dial: s.dial, tags: []string{"a"}, issued: newLedger(1), deadline: time.Second, warmUp: time.Second, slice: 4 * time.Second}
}

func TestClosedLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shop{service: 10 * time.Millisecond, width: 8}
		got := newLoad(s).closed(t.Context(), 8)
		// 8 callers, 100 requests per second each, 4 seconds; at the edges one more or less.
		if n := got.count[issued]; n < 3192 || n > 3208 || got.most != 8 || got.twice != 0 || got.asked < n-8 || got.asked > n+8 {
			t.Errorf("%+v", got)
		}
		if p := got.admitted.Quantile(0.99); p < 10*time.Millisecond || p > 11*time.Millisecond {
			t.Errorf("p99 = %v", p)
		}
		if o, c := s.opened.Load(), s.closed.Load(); o != 8 || c != 8 {
			t.Errorf("%d lines were opened, %d closed", o, c)
		}
	})
}

// TestOpenLoad: requests keep coming at their rate although the shop is full.
func TestOpenLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shop{service: 100 * time.Millisecond, width: 10} // 100 IDs a second
		got := newLoad(s).open(t.Context(), 500)
		if rate := float64(got.asked) / 4; math.Abs(rate-500) > 50 {
			t.Errorf("%.0f requests per second, want about 500", rate)
		}
		if goodput := float64(got.count[issued]) / 4; goodput < 70 || goodput > 101 {
			t.Errorf("%.0f IDs per second, want nearly 100", goodput)
		}
		if sum := got.count[issued] + got.count[rejected]; got.count[rejected] == 0 || got.noHint != 0 || sum < got.asked-20 || sum > got.asked+20 || got.inVain() != 0 || got.refusals.Total() != got.count[rejected] {
			t.Errorf("%+v", got)
		}
		if o, c := s.opened.Load(), s.closed.Load(); o != c || o > 20 || got.most != o {
			t.Errorf("%d lines were opened, %d closed, %d under way at most", o, c, got.most)
		}
	})
}

// TestCallersComeBackWhenTold: two callers of a shop for one.
func TestCallersComeBackWhenTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		got := newLoad(&shop{service: 10 * time.Millisecond, width: 1}).closed(t.Context(), 2)
		if got.count[rejected] < 3 || got.count[rejected] > 5 || got.count[issued] < 390 {
			t.Errorf("rejected %d times in 4 s with a hint of 1 s, %d IDs", got.count[rejected], got.count[issued])
		}
	})
}

func TestLateAreAdmitted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		got := newLoad(&shop{service: time.Hour, width: 8}).closed(t.Context(), 8)
		if got.count[issued] != 0 || got.inVain() != 32 || got.admitted.Quantile(0) < time.Second {
			t.Errorf("%+v, %v", got, got.admitted.Quantile(0))
		}
	})
}

func TestRepeatedIDIsNoticed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		got := newLoad(&shop{service: 10 * time.Millisecond, width: 1, again: 100}).closed(t.Context(), 1)
		if got.twice != 400 {
			t.Errorf("%d IDs came twice, want all but the first 100 of 500", got.twice)
		}
	})
}

func TestLoadsEndWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		began := time.Now()
		l := newLoad(&shop{service: 10 * time.Millisecond, width: 8})
		l.closed(ctx, 8)
		l.open(ctx, 100)
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("both took %v", took)
		}
	})
}

func TestLedger(t *testing.T) {
	t.Parallel()
	l := newLedger(2)
	var news [2]atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for id := range int64(10_000) {
				for tag := range 2 {
					if l.note(tag, id*7) {
						news[tag].Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	if a, b := news[0].Load(), news[1].Load(); a != 10_000 || b != 10_000 {
		t.Errorf("%d and %d IDs were new, want 10,000 of each tag", a, b)
	}
}
