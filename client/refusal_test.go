package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/discovery"
)

// refuse makes a node answer some tags with an error.
func (cl *cluster) refuse(id string, err error, refused func(tag string) bool) {
	n := cl.nodes[id]
	n.set(func(n *fake) {
		n.answer = func(r *client.Request) ([]leaf.Range, error) {
			if refused(r.Tag) {
				return saying(err)(r)
			}
			return cl.issuer.NextN(context.Background(), r.Tag, r.Count)
		}
	})
}

// TestTagIsNotReady: ten tags that no node can serve eject no node, and leave hedges to
// the other tags when a node stops.
func TestTagIsNotReady(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100), node("b", "", 100), node("c", "", 100))
		for id, n := range cl.nodes {
			cl.refuse(id, leaf.ErrNotReady, func(tag string) bool { return tag[:3] == "bad" })
			n.set(func(n *fake) { n.latency = 2 * time.Millisecond })
		}
		c := cl.client(t)
		synctest.Wait()
		ctx, stop := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		for i := range 10 {
			callers.Go(func() {
				for ctx.Err() == nil {
					if id, err := c.Next(ctx, fmt.Sprint("bad ", i)); err == nil {
						t.Errorf("%d of a tag that is not ready", id)
					}
				}
			})
		}
		var mu sync.Mutex
		var took []time.Duration
		for i := range 20 {
			callers.Go(func() {
				for ctx.Err() == nil {
					start := time.Now()
					if _, err := c.Next(ctx, fmt.Sprint("good ", i)); err != nil && ctx.Err() == nil {
						t.Error(err)
					}
					mu.Lock()
					took = append(took, time.Since(start))
					mu.Unlock()
					time.Sleep(5 * time.Millisecond)
				}
			})
		}
		time.Sleep(8 * time.Second)
		if s := c.Stats(); s.Nodes[0].Ejections+s.Nodes[1].Ejections+s.Nodes[2].Ejections > 0 || s.Budget < 20 {
			t.Errorf("before any node failed: %+v", s)
		}
		mu.Lock()
		took = nil
		mu.Unlock()
		cl.nodes["a"].freeze()
		time.Sleep(3 * time.Second)
		cl.nodes["a"].thaw()
		stop()
		callers.Wait()
		slices.Sort(took)
		p99, worst := took[len(took)*99/100], took[len(took)-1]
		t.Logf("%d good calls while a node stood still: p99 %v, worst %v; %+v", len(took), p99, worst, c.Stats())
		if p99 > 20*time.Millisecond || worst > 150*time.Millisecond {
			t.Errorf("good calls took up to %v, p99 %v", worst, p99)
		}
	})
}

// TestLaneShuns: a tag that one node refuses is asked of the others first, and of that one
// now and then.
func TestLaneShuns(t *testing.T) {
	for _, err := range []error{leaf.ErrNotReady, leaf.ErrUnknownTag, leaf.ErrUnauthenticated, leaf.Throttled("5 IDs/s", time.Hour)} {
		t.Run(leaf.ClassOf(err).Code, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cl := newCluster(node("a", "", 100), node("b", "", 100))
				cl.refuse("a", err, func(tag string) bool { return tag == "order" })
				c := cl.client(t)
				synctest.Wait()
				for range 1000 { // 100 s
					calls(t, c, 1)
					time.Sleep(100 * time.Millisecond)
				}
				if n := cl.nodes["a"].asked(); n < 5 || n > 15 {
					t.Errorf("the node that refuses was asked %d times", n)
				}
				if s := c.Stats(); s.Nodes[0].Ejections > 0 || s.Nodes[0].State != client.StateUsable {
					t.Errorf("%+v", s)
				}
				cl.nodes["a"].set(func(a *fake) { a.answer = nil })
				time.Sleep(30 * time.Second)
				if got := cl.shares(t, c, 1000)["a"]; got < 400 {
					t.Errorf("the node that refuses no more got %d of 1000", got)
				}
			})
		})
	}
}

// TestRefusalsForWantOfOthers: while all nodes refuse a tag, calls go on asking them. That says nothing new of the nodes, so the
// lane shuns none of them for longer than one that was left alone meanwhile.
func TestRefusalsForWantOfOthers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100), node("b", "", 100))
		for id := range cl.nodes {
			cl.refuse(id, leaf.ErrNotReady, func(string) bool { return true })
		}
		c := cl.client(t)
		synctest.Wait()
		began := time.Now()
		ctx, stop := context.WithTimeout(t.Context(), 2900*time.Millisecond)
		defer stop()
		for ctx.Err() == nil {
			if id, err := c.Next(ctx, "order"); err == nil {
				t.Errorf("%d of a tag that is not ready", id)
			}
		}
		for id := range cl.nodes {
			cl.nodes[id].set(func(n *fake) { n.answer = nil })
		}
		time.Sleep(6*time.Second - time.Since(began)) // the second shun began within 2 s, and lasts 4 s at most
		got := cl.shares(t, c, 1000)
		if got["a"] < 400 || got["b"] < 400 {
			t.Errorf("requests %v; want that both nodes get about a half", got)
		}
	})
}

// TestSecondOpinion: what a node says of itself is held against one other node's word
// before the caller hears it.
func TestSecondOpinion(t *testing.T) {
	soon, later := leaf.Throttled("5 IDs/s", time.Hour), leaf.Throttled("5 IDs/s", 2*time.Hour)
	for _, c := range []struct {
		name          string
		first, second error // of a and b
		freeze        bool  // b
		want          error
		asked         int           // times that b was
		took          time.Duration // at most
	}{
		{"the other has IDs", leaf.ErrUnknownTag, nil, false, nil, 1, 0},
		{"the other has the last IDs", leaf.ErrOverflow, nil, false, nil, 1, 0},
		{"both agree", leaf.ErrUnknownTag, leaf.ErrUnknownTag, false, leaf.ErrUnknownTag, 1, 0},
		{"a limit promises IDs", leaf.ErrUnauthenticated, soon, false, soon, 1, 0},
		{"the sooner of two limits", later, soon, false, soon, 1, 0},
		{"the first is sooner", soon, later, false, soon, 1, 0},
		{"the other is not ready", leaf.ErrUnknownTag, leaf.ErrNotReady, false, leaf.ErrUnknownTag, 1, 0},
		{"the other has noticed a regress", leaf.ErrUnknownTag, leaf.ErrRegress, false, leaf.ErrRegress, 1, 0},
		{"the other does not answer", leaf.ErrUnknownTag, nil, true, leaf.ErrUnknownTag, 1, 10 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				nodes := []discovery.Node{node("a", "", 1000), node("b", "", 0)}
				cl := newCluster(nodes...)
				cl.refuse("a", c.first, func(string) bool { return true })
				if c.second != nil {
					cl.refuse("b", c.second, func(string) bool { return true })
				}
				leafClient := cl.client(t)
				synctest.Wait()
				if c.freeze {
					cl.nodes["b"].freeze()
				}
				start := time.Now()
				_, err := leafClient.Next(t.Context(), "order")
				if (err == nil) != (c.want == nil) || leaf.ClassOf(err).Code != leaf.ClassOf(c.want).Code || leaf.RetryAfter(err) != leaf.RetryAfter(c.want) {
					t.Errorf("%v, want %v", err, c.want)
				}
				if took := time.Since(start); took > c.took {
					t.Errorf("after %v", took)
				}
				if n := cl.nodes["b"].asked(); n != c.asked && !c.freeze {
					t.Errorf("the other was asked %d times, want %d", n, c.asked)
				}
				if c.freeze {
					cl.nodes["b"].thaw()
				}
			})
		})
	}
}

// TestSecondOpinionIsWithinTheBudget: names that do not exist do not double the load.
func TestSecondOpinionIsWithinTheBudget(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100), node("b", "", 100))
		for id := range cl.nodes {
			cl.refuse(id, leaf.ErrUnknownTag, func(string) bool { return true })
		}
		c := cl.client(t, client.WithRetryBudget(0.1, 10))
		synctest.Wait()
		for i := range 1000 {
			if _, err := c.Next(t.Context(), fmt.Sprint("unknown ", i)); !errors.Is(err, leaf.ErrUnknownTag) {
				t.Error(err)
			}
		}
		if s := c.Stats(); s.Retries > 111 || s.Retries < 50 {
			t.Errorf("%d second opinions of 1000 calls, want at most 111", s.Retries)
		}
	})
}

// TestBudgetIsFair: tags whose every request fails leave retries to the others.
func TestBudgetIsFair(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 1000), node("b", "", 0))
		cl.refuse("a", leaf.ErrNotReady, func(string) bool { return true })
		cl.refuse("b", leaf.ErrNotReady, func(tag string) bool { return tag[:3] == "bad" })
		c := cl.client(t, client.WithRetryBudget(0, 10))
		synctest.Wait()
		ctx, stop := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		for i := range 3 {
			callers.Go(func() {
				for ctx.Err() == nil {
					if id, err := c.Next(ctx, fmt.Sprint("bad ", i)); err == nil {
						t.Errorf("%d of a tag that is not ready", id)
					}
				}
			})
		}
		time.Sleep(time.Minute)
		before := c.Stats()
		start := time.Now()
		for i := range 5 {
			calls(t, c, 1)
			if _, err := c.Next(t.Context(), fmt.Sprint("good ", i)); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("tags that need a retry each waited %v for it; budget %v, held back %d times", took, before.Budget, before.OverBudget)
		}
		if before.OverBudget == 0 || before.Retries < 400 {
			t.Errorf("the budget was not used: %+v", before)
		}
		stop()
		callers.Wait()
	})
}

// TestThrottledWhileSlow: a node is slow, and allows what one of two callers wants. That one does not wait until the node may
// allow what the other wants.
func TestThrottledWhileSlow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100))
		a := cl.nodes["a"]
		a.answer = func(r *client.Request) ([]leaf.Range, error) {
			if r.Count > 50 {
				time.Sleep(100 * time.Millisecond)
				return nil, leaf.Throttled("50 IDs/s", 1500*time.Millisecond)
			}
			return cl.issuer.NextN(context.Background(), r.Tag, r.Count)
		}
		c := cl.client(t)
		synctest.Wait()
		a.freeze()
		var callers sync.WaitGroup
		for _, n := range []int{1, 100, 2} { // the second and the third leave together
			callers.Go(func() {
				began := time.Now()
				_, err := c.NextN(t.Context(), "order", n)
				if took := time.Since(began); n < 100 && (err != nil || took > time.Second) {
					t.Errorf("a call for %d: %v after %v", n, err, took)
				}
			})
			synctest.Wait()
		}
		a.thaw()
		callers.Wait()
	})
}
