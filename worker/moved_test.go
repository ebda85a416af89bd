package worker_test

import (
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/worker"
)

// TestNumberOfAnotherRegistryInTheFile: a node is moved to another registry, which gives it the
// number that it had. While it issued, its clock was ahead for so long that it was believed;
// when it was moved, the clock was set right. Its own file knows up to when it has issued.
func TestNumberOfAnotherRegistryInTheFile(t *testing.T) {
	const ahead = 9 * time.Minute
	run(t, worker.Fixed, func(w *world) {
		n := w.node("a").up()
		number := n.Status().Number
		n.clock.step(ahead)
		time.Sleep(time.Minute)
		last := n.issue(10)
		n.stop()
		n.clock.step(-ahead)
		n.cfg.Fresh = false
		if err := n.start(worker.NewStatic(number)); err != nil {
			w.t.Fatal(err)
		}
		for range 10 {
			time.Sleep(time.Minute)
			if !n.Status().Ready {
				continue
			}
			if next := n.issue(10); next.Unit <= last.Unit {
				w.t.Fatalf("IDs of %d after IDs of %d", next.Unit, last.Unit)
			}
		}
		n.issue(10)
	})
}
