package worker_test

import (
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// TestClockStandsBeforeTheFloor: the wall clock stands still a few microseconds before the
// moment from which a number may be used. The node must not write to its registry without
// a pause until the clock goes on.
func TestClockStandsBeforeTheFloor(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		b := w.node("b", func(c *worker.Config) { c.Fresh = false }).up() // an empty registry may have been wiped
		b.says(leaf.ErrNotReady, "may be used from")
		var from int64
		w.records.set(func(r *records) { from = r.ns.IssueFrom })
		time.Sleep(time.UnixMilli(from).Sub(b.clock.Now()) - 3*time.Microsecond)
		b.clock.stand()
		before := w.records.writes()
		time.Sleep(10 * time.Millisecond)
		if n := w.records.writes() - before; n > 10 {
			t.Fatalf("%d writes to the registry in 10 ms", n)
		}
		time.Sleep(time.Minute)
		if n := w.records.writes() - before; n > 40 {
			t.Errorf("%d writes to the registry in a minute, want about 20: one per interval of renewal", n)
		}
		b.clock.goOn()
		time.Sleep(5 * time.Second)
		b.issue(1)
	})
}
