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

	away time.Duration
}

func (f far) Claim(ctx context.Context, req worker.Request) (worker.Record, error) {
	select {
	case <-time.After(f.away):
		return f.Registry.Claim(ctx, req)
	case <-ctx.Done():
		return worker.Record{}, ctx.Err()
	}
}

// TestRegistryIsFarAway: a claim is some thirty calls one after the other. Where they take longer than the deadline of one
// call, the node gets its number all the same.
func TestRegistryIsFarAway(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a")
		h, err := worker.New(far{worker.NewPool(w.records), 5 * time.Second}, n.disk, n.cfg)
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
	})
}
