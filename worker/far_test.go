package worker_test

import (
	"context"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/worker"
)

// far is a registry that is far away: each call takes a while, and ends with its deadline.
type far struct {
	worker.Registry

	away    time.Duration
	longest time.Duration // that a claim had
}

func (f *far) Claim(ctx context.Context, req worker.Request) (worker.Record, error) {
	deadline, _ := ctx.Deadline()
	f.longest = max(f.longest, time.Until(deadline))
	select {
	case <-time.After(f.away):
		return f.Registry.Claim(ctx, req)
	case <-ctx.Done():
		return worker.Record{}, ctx.Err()
	}
}

// TestRegistryIsFarAway: a claim is some thirty calls one after the other. Where they take longer than the deadline of one
// call, the node gets its number all the same. No claim lasts longer than the lease, which the wait after a wipe counts for it.
func TestRegistryIsFarAway(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a", func(c *worker.Config) { c.Lease = 6 * time.Second })
		registry := &far{Registry: worker.NewPool(w.records), away: 5 * time.Second}
		h, err := worker.New(registry, n.disk, n.cfg)
		if err != nil {
			w.t.Fatal(err)
		}
		n.Holder = h
		if err := h.Start(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		time.Sleep(time.Minute)
		n.issue(10)
		n.stop()
		if registry.longest != n.cfg.Lease {
			w.t.Errorf("a claim had %v, want the lease of %v", registry.longest, n.cfg.Lease)
		}
	})
}
