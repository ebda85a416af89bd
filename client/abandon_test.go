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

// TestShortDeadlines: callers whose deadlines end about when the answer comes take no
// stream away from others, and say nothing about the node.
func TestShortDeadlines(t *testing.T) {
	s := startServer(t, &moments{takes: 2 * time.Millisecond})
	c := newClient(t, client.Addresses(s.addr))
	calls(t, c, 1)
	ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
	defer stop()
	var callers sync.WaitGroup
	var left, served atomic.Int64
	for i := range 8 {
		callers.Go(func() {
			for ctx.Err() == nil {
				mine, cancel := context.WithTimeout(t.Context(), time.Millisecond+rand.N(3*time.Millisecond))
				if _, err := c.Next(mine, fmt.Sprint("tag ", i)); err != nil {
					left.Add(1)
				} else {
					served.Add(1)
				}
				cancel()
			}
		})
	}
	callers.Wait()
	n := c.Stats().Nodes[0]
	t.Logf("%d served, %d left, %+v", served.Load(), left.Load(), n)
	if left.Load() < 100 {
		t.Errorf("%d callers only left before their answer", left.Load())
	}
	if n.Failures > 0 || n.Ejections > 0 {
		t.Errorf("%d failures and %d ejections of a node without a fault", n.Failures, n.Ejections)
	}
}
