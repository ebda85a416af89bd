package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/client/cache"
	"github.com/leaf-idgen/leaf/internal/server/grpcd"
)

// realTime watches the promise of strict order: when a call has ended before another one begins, the ID
// of the other one is larger.
type realTime struct {
	ended  atomic.Int64 // the largest ID of a call that has ended
	calls  atomic.Int64
	broken atomic.Int64
}

// call makes one call for n IDs.
func (o *realTime) call(ctx context.Context, c leaf.Issuer, tag string, n int) error {
	before := o.ended.Load()
	ranges, err := c.NextN(ctx, tag, n)
	if err != nil {
		return err
	}
	o.calls.Add(1)
	if ranges[0].Lo <= before {
		o.broken.Add(1)
	}
	for last := ranges[len(ranges)-1].Hi - 1; ; {
		if old := o.ended.Load(); old >= last || o.ended.CompareAndSwap(old, last) {
			return nil
		}
	}
}

func (o *realTime) check(t *testing.T, least int64) {
	t.Helper()
	if broken, calls := o.broken.Load(), o.calls.Load(); broken > 0 || calls < least {
		t.Errorf("%d of %d calls got an ID below that of a call that had ended before; want none of %d", broken, calls, least)
	}
}

// TestRealTimeOrder: whatever is late, lost, hedged, abandoned or moved, no call gets an ID that was
// asked for before the call began. The nodes give numbers in order, and may answer long after.
func TestRealTimeOrder(t *testing.T) {
	for _, tt := range []struct {
		name string
		opts []client.Option
	}{
		{"client", nil},
		{"hedges", []client.Option{client.WithHedgeAfter(time.Millisecond), client.WithRetryBudget(1, 10_000)}},
		{"cache", []client.Option{client.WithCache(cache.Config{})}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := routed(newCluster(node("a", "", 100), node("b", "", 100), node("c", "", 100), node("d", "", 100)))
				r.set("order", "a:1", 1)
				chance := rand.New(rand.NewPCG(1, 2))
				var lock sync.Mutex
				below := func(n int) int {
					lock.Lock()
					defer lock.Unlock()
					return chance.IntN(n)
				}
				pause := func() { time.Sleep(time.Duration(below(1<<below(18))) * time.Microsecond) } // up to 131 ms, mostly less than 1 ms
				for _, f := range r.nodes {
					f.answer = func(q *client.Request) ([]leaf.Range, error) {
						pause()
						ids, err := r.answer(q)
						pause()
						switch below(20) {
						case 0:
							return nil, client.Broken(errDown)
						case 1:
							return saying(leaf.ErrNotReady)(q)
						}
						return ids, err
					}
				}
				clients := []*client.Client{r.client(t, tt.opts...), r.client(t)}
				synctest.Wait()
				var order realTime
				var callers sync.WaitGroup
				for i := range 20 {
					callers.Go(func() {
						c := clients[i%2]
						for range 100 {
							ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+below(1000))*time.Millisecond)
							_ = order.call(ctx, c, "order", 1+below(3)) // it may be too late
							cancel()
							pause()
						}
					})
				}
				for epoch := range 50 {
					time.Sleep(100 * time.Millisecond)
					r.set("order", string(rune('a'+below(4)))+":1", int64(2+epoch))
				}
				callers.Wait()
				order.check(t, 1000)
				if st := clients[0].Stats(); st.Retries == 0 || st.Lost == 0 {
					t.Errorf("%+v: nothing was late or lost", st)
				}
			})
		})
	}
}

// TestRealTimeOrderOverFailOver: the owner of a tag stops, and its streams end. Another node issues
// the tag from then on.
func TestRealTimeOrderOverFailOver(t *testing.T) {
	t.Parallel()
	var issuer counter
	var owner atomic.Pointer[string]
	var epoch atomic.Int64
	cfg := grpcd.Config{
		Access: leaf.Anyone(&issuer, nil), Logger: slog.New(slog.DiscardHandler),
		Route: func(string) (string, int64, bool) { return *owner.Load(), epoch.Load(), true },
	}
	owner.Store(new(string))
	first, stop := startNode(t, "127.0.0.1:0", cfg)
	second, _ := startNode(t, "127.0.0.1:0", cfg)
	owner.Store(&first)
	c := newClient(t, client.Addresses(first, second), client.WithHedgeAfter(5*time.Second))
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	requests := func(address string) int64 {
		for _, n := range c.Stats().Nodes {
			if n.Address == address {
				return n.Requests
			}
		}
		return 0
	}
	var order realTime
	calls := func(least int64) error {
		var callers sync.WaitGroup
		failed := make(chan error, 4)
		for range cap(failed) {
			callers.Go(func() {
				var err error
				for end := order.calls.Load() + least; err == nil && order.calls.Load() < end; {
					err = order.call(t.Context(), c, "order", 2)
				}
				failed <- err
			})
		}
		callers.Wait()
		close(failed)
		var all error
		for err := range failed {
			all = errors.Join(all, err)
		}
		return all
	}
	if err := calls(200); err != nil {
		t.Fatal(err)
	}
	before := requests(second)
	if err := calls(200); err != nil || requests(second) > before {
		t.Errorf("%v; the node that is not the owner got %d requests", err, requests(second)-before)
	}
	ended := make(chan error, 1)
	go func() { ended <- calls(2000) }()
	owner.Store(&second)
	epoch.Add(1)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	order.check(t, 2000)
	if before, err := requests(second), calls(100); err != nil || requests(second) == before {
		t.Error(fmt.Errorf("the new owner is not asked: %w", err))
	}
}
