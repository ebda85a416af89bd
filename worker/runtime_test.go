package worker_test

import (
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// loaded is a runtime on which every chance falls the same way.
type loaded struct {
	leaf.Runtime

	falls time.Duration
}

func (l loaded) Jitter(d time.Duration) time.Duration { return d/2 + l.falls }

// TestChanceIsTheRuntimes: a Holder draws the first sequence number of each unit from its
// Runtime only, so that a simulation replays exactly.
func TestChanceIsTheRuntimes(t *testing.T) {
	for _, want := range []int64{0, 5, 127} {
		run(t, worker.Leased, func(w *world) {
			n := w.node("a", func(c *worker.Config) { c.Runtime = loaded{c.Runtime, time.Duration(want)} }).up()
			if got := n.issue(1).Sequence; got != want {
				t.Errorf("a unit starts at %d, want %d", got, want)
			}
			n.stop()
		})
	}
}
