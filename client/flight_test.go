package client_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
)

// saying is a node's answer of an error, as it comes over the wire.
func saying(err error) func(*client.Request) ([]leaf.Range, error) {
	return func(*client.Request) ([]leaf.Range, error) {
		return nil, client.Answered(leaf.ClassOf(err).Code, err.Error(), leaf.RetryAfter(err))
	}
}

// TestErrors: what one node says ends the call, or another node is asked.
func TestErrors(t *testing.T) {
	for _, c := range []struct {
		err       error
		elsewhere bool
	}{
		{leaf.ErrBadRequest, false},
		{leaf.ErrUnauthenticated, true},
		{leaf.ErrBlocked, true},
		{leaf.ErrUnknownTag, true},
		{leaf.ErrRegress, false}, // a node that has not noticed may repeat IDs
		{leaf.ErrInvalidRow, true},
		{leaf.ErrOverflow, true}, // the last IDs of a tag may be in memory there
		{leaf.ErrConflict, false},
		{leaf.ErrDisabled, true},
		{leaf.Throttled("5 IDs/s", time.Hour), true},
		{leaf.ErrClock, true},
		{leaf.ErrExhausted, true},
		{leaf.ErrNotReady, true},
		{errors.New("internal"), true},
	} {
		t.Run(leaf.ClassOf(c.err).Code, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cl := newCluster(node("a", "", 1000), node("b", "", 0)) // b only if a cannot
				a, b := cl.nodes["a"], cl.nodes["b"]
				a.answer = saying(fmt.Errorf("tag %q: %w", "order", c.err))
				leafClient := cl.client(t)
				synctest.Wait()
				start := time.Now()
				_, err := leafClient.Next(t.Context(), "order")
				if time.Since(start) != 0 {
					t.Errorf("answered after %v", time.Since(start))
				}
				if c.elsewhere {
					if err != nil || b.asked() != 1 {
						t.Errorf("%v; want an ID of the other node", err)
					}
					// Both say so: the call ends, in time and in their words.
					b.set(func(b *fake) { b.answer = a.answer })
					_, err = leafClient.Next(t.Context(), "order")
				}
				if got, want := leaf.ClassOf(err), leaf.ClassOf(c.err); got.Code != want.Code || err.Error() != `tag "order": `+c.err.Error() {
					t.Errorf("%v of class %q; want %q", err, got.Code, want.Code)
				}
				if leaf.RetryAfter(err) != leaf.RetryAfter(c.err) {
					t.Errorf("retry after %v", leaf.RetryAfter(err))
				}
				if took := time.Since(start); took > 2500*time.Millisecond {
					t.Errorf("failed after %v", took)
				}
				if !c.elsewhere && (a.asked() != 1 || b.asked() != 0) {
					t.Error("somebody was asked again")
				}
			})
		})
	}
}

// TestDeadlines: a call ends at its own deadline or at the client's limit, and says what
// is known.
func TestDeadlines(t *testing.T) {
	for _, c := range []struct {
		name  string
		own   time.Duration // 0: none
		node  func(*fake)
		limit time.Duration // how late the end may be
		want  []error
	}{
		{"no answer, own deadline", 300 * time.Millisecond, nil, 0, []error{leaf.ErrNotReady, context.DeadlineExceeded}},
		{"no answer, none of its own", 0, nil, 250 * time.Millisecond, []error{leaf.ErrNotReady}},
		{"no connection", 300 * time.Millisecond, func(f *fake) { f.down = true }, 0, []error{leaf.ErrNotReady, context.DeadlineExceeded}},
		{"an answer that invites to retry", 300 * time.Millisecond, func(f *fake) { f.answer = saying(leaf.ErrExhausted) }, 0, []error{leaf.ErrExhausted, context.DeadlineExceeded}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cl := newCluster(node("a", "", 100))
				a := cl.nodes["a"]
				if c.node != nil {
					a.set(c.node)
				} else {
					a.set(func(a *fake) { a.mute = true })
				}
				leafClient := cl.client(t)
				ctx, want := t.Context(), 2*time.Second
				if c.own > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, c.own)
					defer cancel()
					want = c.own
				}
				start := time.Now()
				_, err := leafClient.Next(ctx, "order")
				for _, target := range c.want {
					if !errors.Is(err, target) {
						t.Errorf("%v is not %v", err, target)
					}
				}
				if took := time.Since(start); took < want || took > want+c.limit {
					t.Errorf("ended after %v, want %v", took, want)
				}
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				if _, err := leafClient.Next(ctx, "order"); !errors.Is(err, context.Canceled) {
					t.Errorf("a call that was cancelled before: %v", err)
				}
			})
		})
	}
}

// TestTimeLimitOfTheFirst: the caller that starts a request ends in time, and so do those
// who come after it, however long a hedge may take.
func TestTimeLimitOfTheFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100), node("b", "", 100))
		cl.nodes["a"].mute, cl.nodes["b"].mute = true, true
		c := cl.client(t, client.WithHedgeAfter(time.Minute), client.WithTimeout(100*time.Millisecond))
		synctest.Wait()
		var callers sync.WaitGroup
		for i := range 3 {
			callers.Go(func() {
				time.Sleep(time.Duration(i) * 50 * time.Millisecond)
				start := time.Now()
				if _, err := c.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrNotReady) || time.Since(start) > 350*time.Millisecond {
					t.Errorf("caller %d: %v after %v", i, err, time.Since(start))
				}
			})
		}
		callers.Wait()
	})
}

// TestHedge: a node that is late is not waited for, and what it says in the end is lost,
// counted, and nobody's.
func TestHedge(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 1000), node("b", "", 0))
		a, b := cl.nodes["a"], cl.nodes["b"]
		c := cl.client(t)
		synctest.Wait()
		a.set(func(a *fake) { a.latency = 100 * time.Millisecond })
		var ids ledger
		start := time.Now()
		ranges, err := c.NextN(t.Context(), "order", 7)
		if err != nil {
			t.Fatal(err)
		}
		ids.add(t, ranges...)
		if took := time.Since(start); took != 10*time.Millisecond {
			t.Errorf("answered after %v, want 10ms", took)
		}
		if s := c.Stats(); s.Hedges != 1 || s.Lost != 0 || b.asked() != 1 {
			t.Errorf("%+v", s)
		}
		time.Sleep(time.Second)
		if s := c.Stats(); s.Late != 1 || s.Lost != 7 || s.Nodes[0].InFlight != 0 {
			t.Errorf("after the late answer: %+v", s)
		}
		a.set(func(a *fake) { a.latency = 0 })
		for range 20 {
			ranges, err := c.NextN(t.Context(), "order", 7)
			if err != nil {
				t.Fatal(err)
			}
			ids.add(t, ranges...)
		}
	})
}

// TestHedgeAfter: a fixed delay is kept, and a node of a remote zone is asked later.
func TestHedgeAfter(t *testing.T) {
	for _, c := range []struct {
		name string
		zone string // of the second node
		want time.Duration
	}{
		{"in the zone", "home", 30 * time.Millisecond},
		{"remote", "away", 120 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cl := newCluster(node("a", "home", 1000), node("b", c.zone, 0))
				leafClient := cl.client(t, client.WithZone("home"), client.WithHedgeAfter(30*time.Millisecond))
				synctest.Wait()
				cl.nodes["a"].freeze()
				start := time.Now()
				if _, err := leafClient.Next(t.Context(), "order"); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(start); took != c.want {
					t.Errorf("answered after %v, want %v", took, c.want)
				}
				cl.nodes["a"].thaw()
			})
		})
	}
}

// TestSlowFlightHoldsUpNobody: callers who come after a request got stuck do not wait
// for it.
func TestSlowFlightHoldsUpNobody(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100))
		a := cl.nodes["a"]
		c := cl.client(t)
		synctest.Wait()
		stuck := make(chan struct{})
		once := sync.Once{}
		a.set(func(a *fake) {
			a.answer = func(r *client.Request) ([]leaf.Range, error) {
				first := false
				once.Do(func() { first = true })
				if first {
					<-stuck
				}
				return cl.issuer.NextN(context.Background(), r.Tag, r.Count)
			}
		})
		first := make(chan error, 1)
		go func() { _, err := c.Next(t.Context(), "order"); first <- err }()
		synctest.Wait()
		start := time.Now()
		for range 10 {
			if _, err := c.Next(t.Context(), "order"); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took > 20*time.Millisecond {
			t.Errorf("the others waited for %v", took)
		}
		close(stuck)
		if err := <-first; err != nil {
			t.Error(err)
		}
	})
}

// TestThrottled: a hint within the caller's time is followed, one beyond it ends the
// call at once.
func TestThrottled(t *testing.T) {
	for _, c := range []struct {
		name  string
		after time.Duration
		want  time.Duration
		ok    bool
	}{
		{"in time", 300 * time.Millisecond, 300 * time.Millisecond, true},
		{"too late", 1500 * time.Millisecond, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cl := newCluster(node("a", "", 100))
				a := cl.nodes["a"]
				leafClient := cl.client(t)
				synctest.Wait()
				free := time.Now().Add(c.after)
				a.set(func(a *fake) {
					a.answer = func(r *client.Request) ([]leaf.Range, error) {
						if left := time.Until(free); left > 0 {
							return saying(leaf.Throttled("5 IDs/s", left))(r)
						}
						return cl.issuer.NextN(context.Background(), r.Tag, r.Count)
					}
				})
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				start := time.Now()
				_, err := leafClient.Next(ctx, "order")
				if took := time.Since(start); took != c.want || (err == nil) != c.ok {
					t.Errorf("%v after %v", err, took)
				}
				if !c.ok && (!errors.Is(err, leaf.ErrThrottled) || leaf.RetryAfter(err) != c.after) {
					t.Errorf("%v, retry after %v; want throttled, %v", err, leaf.RetryAfter(err), c.after)
				}
				if n := a.asked(); n > 2 {
					t.Errorf("asked %d times", n)
				}
			})
		})
	}
}

// TestThrottledTogether: a batch that is over the limit is cut until its parts pass, so
// that callers together are not refused what each of them would get.
func TestThrottledTogether(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100))
		a := cl.nodes["a"]
		c := cl.client(t)
		synctest.Wait()
		a.set(func(a *fake) {
			a.answer = func(r *client.Request) ([]leaf.Range, error) {
				if r.Count > 10 {
					return saying(leaf.Throttled("10 IDs at once", 20*time.Hour))(r)
				}
				return cl.issuer.NextN(context.Background(), r.Tag, r.Count)
			}
		})
		a.freeze()
		var ids ledger
		var callers sync.WaitGroup
		refused := 0
		for i := range 200 {
			callers.Go(func() {
				n := i%4 + 1
				if i == 150 {
					n = 11
				}
				ranges, err := c.NextN(t.Context(), "order", n)
				if n == 11 {
					refused++
					if !errors.Is(err, leaf.ErrThrottled) {
						t.Errorf("the caller of 11: %v", err)
					}
					return
				}
				if err != nil {
					t.Errorf("caller %d: %v", i, err)
				}
				ids.add(t, ranges...)
			})
			synctest.Wait()
		}
		a.thaw()
		callers.Wait()
		if refused != 1 {
			t.Errorf("%d refused", refused)
		}
		if ids.len() != 50*(1+2+3+4)-3 {
			t.Errorf("%d IDs", ids.len())
		}
	})
}

// TestTooManyTogether: a node can never give what all callers of a batch want together, because of a limit, or because the
// numbers of the tag are nearly used up. Callers that want fewer get their IDs.
func TestTooManyTogether(t *testing.T) {
	for name, refusal := range map[string]error{
		"a limit": leaf.BadField("count", 11, "must be 1 to 10"),
		"used up": leaf.ErrOverflow,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cl := newCluster(node("a", "", 100), node("b", "", 100))
				c := cl.client(t)
				synctest.Wait()
				for _, n := range cl.nodes {
					n.set(func(n *fake) {
						n.latency = time.Millisecond
						n.answer = func(r *client.Request) ([]leaf.Range, error) {
							if r.Count > 10 {
								return saying(refusal)(r)
							}
							return cl.issuer.NextN(context.Background(), r.Tag, r.Count)
						}
					})
				}
				var ids ledger
				var callers sync.WaitGroup
				for i := range 200 {
					callers.Go(func() {
						if i == 150 {
							if _, err := c.NextN(t.Context(), "order", 11); leaf.ClassOf(err).Code != leaf.ClassOf(refusal).Code {
								t.Errorf("the caller of 11: %v", err)
							}
							return
						}
						id, err := c.Next(t.Context(), "order")
						if err != nil {
							t.Errorf("caller %d: %v", i, err)
							return
						}
						ids.add(t, leaf.Range{Lo: id, Hi: id + 1})
					})
				}
				callers.Wait()
				if ids.len() != 199 {
					t.Errorf("%d IDs", ids.len())
				}
			})
		})
	}
}

// TestRefusalIsForItsSize: that many IDs cannot be had says nothing about fewer, and that
// a client waits for many holds up nobody.
func TestRefusalIsForItsSize(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100))
		a := cl.nodes["a"]
		c := cl.client(t)
		synctest.Wait()
		a.set(func(a *fake) {
			a.answer = func(r *client.Request) ([]leaf.Range, error) {
				if r.Count > 10 {
					return saying(leaf.Throttled("10 IDs at once", 500*time.Millisecond))(r)
				}
				return cl.issuer.NextN(context.Background(), r.Tag, r.Count)
			}
		})
		many := make(chan error, 1)
		go func() { _, err := c.NextN(t.Context(), "order", 11); many <- err }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		before, start := a.asked(), time.Now()
		if _, err := c.NextN(ctx, "order", 12); !errors.Is(err, leaf.ErrThrottled) || a.asked() != 0 || time.Since(start) != 0 {
			t.Errorf("more than was refused a moment ago: %v after %v", err, time.Since(start))
		}
		if _, err := c.Next(ctx, "order"); err != nil || before != 1 {
			t.Errorf("less than was refused: %v", err)
		}
		if err := <-many; !errors.Is(err, leaf.ErrThrottled) {
			t.Error(err)
		}
	})
}

// TestBudget: when a node gives no answers, what is asked beyond the first request of
// each batch stays within the budget.
func TestBudget(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100), node("b", "", 100))
		for _, f := range cl.nodes {
			f.down = true
		}
		c := cl.client(t, client.WithRetryBudget(0.1, 10))
		const calls, seconds = 100, 4
		var callers sync.WaitGroup
		for i := range calls {
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), seconds*time.Second)
				defer cancel()
				if _, err := c.Next(ctx, fmt.Sprint("tag ", i)); !errors.Is(err, leaf.ErrNotReady) {
					t.Error(err)
				}
			})
		}
		callers.Wait()
		s := c.Stats()
		if most := int64(10 + calls/10 + 10*seconds); s.Retries+s.Hedges > most || s.OverBudget == 0 {
			t.Errorf("%d retries and %d hedges, want at most %d; held back %d times", s.Retries, s.Hedges, most, s.OverBudget)
		}
		if s.Retries < 40 {
			t.Errorf("%d retries only: the budget was not used", s.Retries)
		}
	})
}

// TestPromptAnswers: a link may answer within Ask, as a closed one does.
func TestPromptAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100), node("b", "", 100))
		cl.nodes["a"].prompt, cl.nodes["b"].prompt = true, true
		cl.nodes["a"].answer = func(*client.Request) ([]leaf.Range, error) { return nil, client.ErrGivenUp }
		c := cl.client(t)
		synctest.Wait()
		var callers sync.WaitGroup
		for range 50 {
			callers.Go(func() { calls(t, c, 5) })
		}
		callers.Wait()
		if s := c.Stats(); s.Nodes[0].Failures > 0 || s.Nodes[0].InFlight > 0 || s.Nodes[1].InFlight > 0 {
			t.Errorf("%+v", s.Nodes)
		}
	})
}
