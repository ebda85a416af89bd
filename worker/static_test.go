package worker_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

// TestStaticNumberOutOfRange: the registry of a static number refuses one that is not
// among those of the layout.
func TestStaticNumberOutOfRange(t *testing.T) {
	r, err := worker.NewStatic(7).Claim(t.Context(), worker.Request{Numbers: leaf.Range{Lo: 0, Hi: 4}})
	if !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), `worker-id="7"`) && !strings.Contains(err.Error(), "worker-id=7") {
		t.Errorf("Claim = %+v, %v", r, err)
	}
}

// TestStaticIsNeverFresh: a static number has no registry that a start could have made. A program that sets Fresh at each
// start, and whose data directory does not outlive its container, waits all the same: in a layout with units of a second the
// process before may have issued in the present one.
func TestStaticIsNeverFresh(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		for range 2 {
			n := w.node("a", func(c *worker.Config) { c.Fresh, c.Layout = true, snowflake.Seconds() })
			if err := n.start(worker.NewStatic(3)); err != nil {
				t.Fatal(err)
			}
			n.refuses(leaf.ErrNotReady)
			time.Sleep(19 * time.Second)
			n.issue(5000)
			n.crash()
		}
	})
}
