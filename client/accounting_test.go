package client_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/client/cache"
	"github.com/leaf-idgen/leaf/client/leaftest"
	"github.com/leaf-idgen/leaf/discovery"
)

// TestEveryIDIsAccountedFor: each ID that a node has issued was delivered once or is
// counted as lost, with answers that come late, callers that leave and a cache.
func TestEveryIDIsAccountedFor(t *testing.T) {
	for _, c := range []struct {
		name string
		opts []client.Option
	}{
		{"plain", nil},
		{"cache", []client.Option{client.WithCache(cache.Config{Min: 5})}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cl := newCluster(node("a", "", 100), node("b", "", 100))
				for i, id := range []string{"a", "b"} {
					cl.nodes[id].latency = time.Duration(15+10*i) * time.Millisecond
				}
				leafClient := cl.client(t, append(c.opts, client.WithHedgeAfter(10*time.Millisecond), client.WithRetryBudget(1, 1_000_000))...)
				synctest.Wait()
				var ids ledger
				var callers sync.WaitGroup
				for i := range 30 {
					callers.Go(func() {
						for k := range 50 {
							patience := time.Second
							if i%3 == 0 {
								patience = rand.N(40 * time.Millisecond)
							}
							ctx, cancel := context.WithTimeout(t.Context(), patience)
							ranges, err := leafClient.NextN(ctx, fmt.Sprint("tag ", i%4), k%7+1)
							cancel()
							if err != nil && i%3 != 0 {
								t.Error(err)
							}
							ids.add(t, ranges...)
						}
					})
				}
				callers.Wait()
				time.Sleep(time.Second) // the late answers
				if err := leafClient.Close(t.Context()); err != nil {
					t.Error(err)
				}
				s, issued := leafClient.Stats(), cl.issuer.last.Load()
				if got := ids.len() + s.Lost + s.Cache.Unused; got != issued || s.Late == 0 || s.Lost == 0 {
					t.Errorf("%d delivered, %d lost, %d unused: %d of %d issued; %d answers late", ids.len(), s.Lost, s.Cache.Unused, got, issued, s.Late)
				}
			})
		})
	}
}

// TestEveryIDIsAccountedForOverSockets is the same with a real server, whose every answer
// is late and asked for twice.
func TestEveryIDIsAccountedForOverSockets(t *testing.T) {
	s := leaftest.New(t, "order")
	s.Delay(10 * time.Millisecond)
	twice := []discovery.Node{s.Node(), s.Node()}
	twice[0].ID, twice[1].ID = "a", "b"
	c := newClient(t, client.Nodes(twice...), client.WithHedgeAfter(2*time.Millisecond), client.WithRetryBudget(1, 1_000_000))
	var ids ledger
	var callers sync.WaitGroup
	for i := range 8 {
		callers.Go(func() {
			for k := range 20 {
				ranges, err := c.NextN(t.Context(), "order", (i+k)%9+1)
				if err != nil {
					t.Error(err)
				}
				ids.add(t, ranges...)
			}
		})
	}
	callers.Wait()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) { // the late answers
		n := c.Stats().Nodes
		if n[0].InFlight+n[1].InFlight == 0 || time.Now().After(deadline) {
			break
		}
	}
	stats, issued := c.Stats(), s.Last("order")
	if ids.len()+stats.Lost != issued || stats.Late < 10 {
		t.Errorf("%d delivered, %d lost of %d issued; %d answers late", ids.len(), stats.Lost, issued, stats.Late)
	}
}
