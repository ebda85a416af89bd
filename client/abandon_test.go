package client_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
)

// moments answers after some time.
type moments struct {
	counter
	takes time.Duration
}

func (m *moments) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	time.Sleep(m.takes)
	return m.counter.NextN(ctx, tag, n)
}

// TestTooShortDeadlines: a node that answers none of its callers in time, because their
// deadlines are shorter than it takes, does not count as one that has stopped.
func TestTooShortDeadlines(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100))
		cl.nodes["a"].latency = 5 * time.Millisecond
		c := cl.client(t)
		synctest.Wait()
		for range 5000 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			if id, err := c.Next(ctx, "order"); err == nil {
				t.Errorf("%d before the node has answered", id)
			}
			cancel()
		}
		if n := c.Stats().Nodes[0]; n.Failures > 0 || n.Ejections > 0 {
			t.Errorf("%+v", n)
		}
		calls(t, c, 10)
	})
}

// oneNode returns the client of a cluster with the node a, which has answered.
func oneNode(t *testing.T) (*cluster, *client.Client) {
	t.Helper()
	cl := newCluster(node("a", "", 100))
	c := cl.client(t)
	synctest.Wait()
	calls(t, c, 10)
	return cl, c
}

// TestSlowerThanItsCallers: a node answers after the last caller has left, and later than a hedge would have been
// asked. The answers show that it works.
func TestSlowerThanItsCallers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl, c := oneNode(t)
		cl.nodes["a"].set(func(f *fake) { f.latency = 30 * time.Millisecond })
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			if id, err := c.Next(ctx, "order"); err == nil {
				t.Errorf("%d before the node has answered", id)
			}
			cancel()
		}
		if n := c.Stats().Nodes[0]; n.Failures > 0 || n.Ejections > 0 {
			t.Errorf("%+v", n)
		}
	})
}

// TestNodesThatWaitForWhatTheyLack: nodes wait for IDs for a second, and then say that they have none. Callers that have left
// by then take none of them for one that answers health checks only.
func TestNodesThatWaitForWhatTheyLack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100), node("b", "", 100))
		for _, n := range cl.nodes {
			n.set(func(f *fake) {
				f.latency = time.Second
				f.answer = func(*client.Request) ([]leaf.Range, error) { return nil, leaf.ErrNotReady }
			})
		}
		c := cl.client(t)
		synctest.Wait()
		for range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			if id, err := c.Next(ctx, "order"); err == nil {
				t.Errorf("%d of a node without IDs", id)
			}
			cancel()
		}
		for _, n := range c.Stats().Nodes {
			if n.Failures > 0 || n.Ejections > 0 || n.State != client.StateUsable {
				t.Errorf("%+v", n)
			}
		}
	})
}

// TestTagWithoutAnOwner: after a crash of an owner the other nodes wait for the next one, longer than for IDs. Callers that have
// left by then take none of these nodes for one that answers health checks only.
func TestTagWithoutAnOwner(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := routed(newCluster(node("a", "", 100), node("b", "", 100), node("c", "", 100)))
		r.set("order", "a:1", 1)
		c := r.client(t)
		synctest.Wait()
		r.call(t, c, "order", 10)
		r.nodes["a"].set(func(f *fake) { f.down = true })
		for _, id := range []string{"b", "c"} {
			r.nodes[id].set(func(f *fake) {
				f.latency = 2700 * time.Millisecond
				f.answer = func(*client.Request) ([]leaf.Range, error) { return nil, leaf.ErrNotReady }
			})
		}
		for range 40 { // 12 s
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
			if id, err := c.Next(ctx, "order"); err == nil {
				t.Errorf("%d of a tag without an owner", id)
			}
			cancel()
		}
		for _, n := range c.Stats().Nodes {
			if n.ID != "a" && n.Ejections > 0 {
				t.Errorf("%+v", n)
			}
		}
		r.set("order", "b:1", 2)
		for _, id := range []string{"b", "c"} {
			r.nodes[id].set(func(f *fake) { f.latency, f.answer = 0, r.answer })
		}
		r.call(t, c, "order", 10)
	})
}

// TestProcessStoodStill: this process did not run for a while, because its processors were taken away or it was
// suspended. Then all deadlines have passed at once, and the answers lie unread. That is no evidence
// of a node that has stopped; three requests in a row without an answer are.
func TestProcessStoodStill(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl, c := oneNode(t)
		cl.nodes["a"].set(func(f *fake) { f.mute = true })
		leave := func() {
			var callers sync.WaitGroup
			for i := range 5 {
				callers.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), 1300*time.Millisecond)
					defer cancel()
					if id, err := c.Next(ctx, fmt.Sprint("tag ", i)); err == nil {
						t.Errorf("%d before the node has answered", id)
					}
				})
			}
			callers.Wait()
			synctest.Wait()
		}
		for range 2 {
			leave()
			if n := c.Stats().Nodes[0]; n.Failures > 0 || n.Ejections > 0 {
				t.Errorf("%+v", n)
			}
			time.Sleep(time.Millisecond) // of the bubble: the next requests are sent later than these were given up
		}
		leave()
		if n := c.Stats().Nodes[0]; n.Ejections != 1 {
			t.Errorf("%+v; want an ejection of a node that answers nothing", n)
		}
	})
}

// TestShortDeadlines: callers whose deadlines end about when the answer comes take no
// stream away from others, and say nothing about the node. Each caller finds out by itself how long that is
// here and now: on a busy machine a fixed time would end before each answer, as with a node that has stopped.
func TestShortDeadlines(t *testing.T) {
	s := startServer(t, &moments{takes: 2 * time.Millisecond})
	c := newClient(t, client.Addresses(s.addr))
	calls(t, c, 1)
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	least := time.Now().Add(2 * time.Second)
	var callers sync.WaitGroup
	var left, served atomic.Int64
	enough := func() bool { return left.Load() >= 200 && served.Load() >= 50 && time.Now().After(least) }
	for i := range 8 {
		callers.Go(func() {
			for patience := 2 * time.Millisecond; ctx.Err() == nil && !enough(); {
				mine, cancel := context.WithTimeout(t.Context(), patience/2+rand.N(patience))
				if _, err := c.Next(mine, fmt.Sprint("tag ", i)); err != nil {
					left.Add(1)
					patience += patience / 8
				} else {
					served.Add(1)
					patience -= patience / 4 // so that two in three leave
				}
				cancel()
			}
		})
	}
	callers.Wait()
	n := c.Stats().Nodes[0]
	t.Logf("%d served, %d left, %+v", served.Load(), left.Load(), n)
	if !enough() {
		t.Errorf("in a minute only %d callers were served and %d left before their answer", served.Load(), left.Load())
	}
	if n.Failures > 0 || n.Ejections > 0 {
		t.Errorf("%d failures and %d ejections of a node without a fault", n.Failures, n.Ejections)
	}
}
