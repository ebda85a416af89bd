package client_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
)

// TestEverybodyIsWoken: callers of one request wake one another. Some leave before the
// answer comes, some at the same moment; the others get their IDs, and what nobody got is
// counted.
func TestEverybodyIsWoken(t *testing.T) {
	const callers, latency = 200, time.Millisecond // a few chains
	for _, c := range []struct {
		name  string
		stays func(caller int) time.Duration // 0: until it is served
	}{
		{"all stay", func(int) time.Duration { return 0 }},
		{"every third leaves before the answer", func(caller int) time.Duration {
			if caller%3 == 0 {
				return latency
			}
			return 0
		}},
		{"every third leaves as the answer comes", func(caller int) time.Duration {
			if caller%3 == 0 {
				return 2 * latency
			}
			return 0
		}},
		{"all leave as the answer comes", func(int) time.Duration { return 2 * latency }},
		{"every one but the last of a chain", func(caller int) time.Duration {
			if caller%32 != 31 {
				return 2 * latency
			}
			return 0
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cl := newCluster(node("a", "", 100))
				client := cl.client(t)
				synctest.Wait()
				cl.nodes["a"].set(func(a *fake) { a.latency = latency })
				for range 5 {
					var ids ledger
					var all sync.WaitGroup
					before := client.Stats().Lost
					first := make(chan struct{})
					for i := range callers + 1 {
						all.Go(func() {
							ctx, cancel := context.Background(), context.CancelFunc(func() {})
							if i < callers {
								<-first // of the rest, one request
								if d := c.stays(i); d > 0 {
									ctx, cancel = context.WithTimeout(ctx, d)
								}
							}
							defer cancel()
							id, err := client.Next(ctx, "order")
							if err == nil {
								ids.add(t, leaf.Range{Lo: id, Hi: id + 1})
							} else if _, bounded := ctx.Deadline(); !bounded {
								t.Errorf("caller %d, who has time: %v", i, err)
							}
						})
					}
					synctest.Wait()
					close(first)
					served := make(chan struct{})
					go func() { all.Wait(); close(served) }()
					select {
					case <-served:
					case <-time.After(time.Minute):
						t.Fatal("somebody was served and not woken")
					}
					synctest.Wait()
					if lost := client.Stats().Lost - before; lost+ids.len() > callers+1 {
						t.Errorf("%d IDs came and %d are lost, of %d that were asked for", ids.len(), lost, callers+1)
					}
				}
			})
		})
	}
}
