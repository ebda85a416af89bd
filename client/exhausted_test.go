package client_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/discovery"
)

// scarce lets all nodes together give one ID in so much time. A request that has not got all of its IDs within a second
// gets "exhausted", and what it has taken is lost, as with real nodes.
func (cl *cluster) scarce(every time.Duration) {
	turn := make(chan struct{}, 1)
	for _, n := range cl.nodes {
		n.set(func(n *fake) {
			n.answer = func(r *client.Request) (got []leaf.Range, err error) {
				patience := time.NewTimer(time.Second)
				defer patience.Stop()
				for range r.Count {
					select {
					case turn <- struct{}{}:
					case <-patience.C:
						return nil, leaf.ErrExhausted
					}
					time.Sleep(every)
					id, _ := cl.issuer.Next(context.Background(), r.Tag)
					<-turn
					got = leaf.AppendRange(got, leaf.Range{Lo: id, Hi: id + 1})
				}
				return got, nil
			}
		})
	}
}

// TestMoreCallersThanIDs: the nodes have fewer IDs a second than callers wait, and enough for all of them in their time. The
// callers get most of what there is, and hardly one waits in vain.
func TestMoreCallersThanIDs(t *testing.T) {
	for name, list := range map[string][]discovery.Node{
		"of one node":     {node("a", "", 100)},
		"of one database": {node("a", "", 100), node("b", "", 100), node("c", "", 100)},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cl := newCluster(list...)
				cl.scarce(1200 * time.Microsecond) // 833 a second
				c := cl.client(t)
				synctest.Wait()
				var served, failed atomic.Int64
				var callers sync.WaitGroup
				began := time.Now()
				for range 1500 {
					callers.Go(func() {
						for time.Since(began) < 6*time.Second {
							ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
							if _, err := c.Next(ctx, "order"); err == nil {
								served.Add(1)
							} else {
								failed.Add(1)
							}
							cancel()
						}
					})
				}
				callers.Wait()
				took := time.Since(began).Seconds()
				t.Logf("%.0f IDs a second, %d calls failed", float64(served.Load())/took, failed.Load())
				if float64(served.Load())/took < 550 || failed.Load() > 500 {
					t.Errorf("%d calls got an ID in %.1f s, and %d got none; want 550 a second of the 833 that there are, and at most 500 without", served.Load(), took, failed.Load())
				}
			})
		})
	}
}

// TestMuteWhileIDsAreScarce: a node had too few IDs, and then it answers health checks only. Its callers get IDs of another one.
func TestMuteWhileIDsAreScarce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100), node("b", "", 1))
		for _, n := range cl.nodes {
			n.set(func(n *fake) {
				n.latency = time.Millisecond
				n.answer = func(r *client.Request) ([]leaf.Range, error) {
					if r.Count > 4 {
						return nil, leaf.ErrExhausted
					}
					return cl.issuer.NextN(context.Background(), r.Tag, r.Count)
				}
			})
		}
		c := cl.client(t)
		synctest.Wait()
		var callers sync.WaitGroup
		for range 60 {
			callers.Go(func() { calls(t, c, 1) })
		}
		callers.Wait()
		time.Sleep(3 * time.Second) // until the lane asks the heavy node first again
		cl.nodes["a"].set(func(n *fake) { n.mute = true })
		began := time.Now()
		calls(t, c, 1)
		if took := time.Since(began); took < time.Second || took > 1300*time.Millisecond {
			t.Errorf("the other node was asked after %v", took)
		}
	})
}
