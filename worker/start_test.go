package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/worker"
)

// TestStartThatEnds: Start returns when its context does.
func TestStartThatEnds(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a")
		h, err := worker.New(worker.NewPool(mute{w.records}), n.disk, n.cfg)
		if err != nil {
			w.t.Fatal(err)
		}
		n.Holder = h
		w.t.Cleanup(n.crash)
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Millisecond)
		defer cancel()
		if err := h.Start(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "first claim") {
			w.t.Errorf("Start = %v", err)
		}
	})
}
