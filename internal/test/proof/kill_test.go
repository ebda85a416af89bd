package proof_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// TestKillUnderLoad: two nodes on one table under load, one of them killed with
// SIGKILL in mid-load again and again. Every ID that a client received is distinct,
// on steps that divide nothing.
func TestKillUnderLoad(t *testing.T) {
	rounds, atLeast := long.Load(3, 10), long.Load(30_000, 1_000_000)
	for name, open := range map[string]func(testing.TB) server.Database{"MariaDB": server.MariaDB, "PostgreSQL": server.Postgres} {
		t.Run(name, func(t *testing.T) {
			store := open(t).URL()
			mustLeaf(t, "schema", "apply", "--store", store)
			tags := map[string]string{"seven": "7", "thirteen": "13", "thousand": "1000"}
			for tag, step := range tags {
				mustLeaf(t, "tag", "create", tag, "--step", step, "--fixed-step", "--store", store)
			}
			a, b := newNode(t, "a", store), newNode(t, "b", store)
			a.start(t)
			b.start(t)

			ids := newLedger()
			ctx, stop := context.WithCancel(t.Context())
			var clients sync.WaitGroup
			for _, n := range []*node{a, b} {
				for tag := range tags {
					for range 2 {
						clients.Go(func() { hammer(ctx, n, tag, ids) })
					}
				}
			}
			for round := range rounds {
				until := ids.len() + atLeast/(rounds+1)
				waitFor(t, 3*time.Minute, "more IDs", func() bool { return ids.len() >= until })
				time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond) // somewhere in mid-load, not at a round number
				a.kill()
				a.start(t)
				t.Logf("round %d: %d IDs", round+1, ids.len())
			}
			waitFor(t, 3*time.Minute, "the last IDs", func() bool { return ids.len() >= atLeast })
			stop()
			clients.Wait()
			ids.check(t)
			t.Logf("%d IDs, all distinct", ids.len())
		})
	}
}

// hammer asks one node for one tag's IDs until ctx ends, in batches of awkward
// sizes, through whatever errors a killed node causes.
func hammer(ctx context.Context, n *node, tag string, ids *ledger) {
	c := newClient()
	defer c.CloseIdleConnections()
	for i := 0; ctx.Err() == nil; i++ {
		count := []int{1, 5, 1, 17, 200}[i%5]
		status, got, err := get(ctx, c, n, tag, count)
		if err != nil || status != 200 {
			time.Sleep(20 * time.Millisecond) // the node is being restarted
			continue
		}
		ids.add(tag, got)
		time.Sleep(8 * time.Millisecond) // the pace of the load: the nodes need the processor, too
	}
}

// waitFor polls until the condition holds.
func waitFor(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	if !holdsWithin(limit, holds) {
		t.Fatalf("no %s within %v", what, limit)
	}
}
