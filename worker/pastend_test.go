package worker_test

import (
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

// TestLeasedNumberPastTheLayout: a leased number may be used only past the end of the layout,
// because a clock was wrong. No node claims it. A node that finds no other number says so, and
// takes the first one that becomes free.
func TestLeasedNumberPastTheLayout(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		two := func(c *worker.Config) { c.Numbers.Hi = 2 }
		last := snowflake.Leaf().End().UnixMilli()
		other := w.node("other", two).up()
		burned := 1 - other.Status().Number
		w.records.set(func(r *records) {
			r.byNum[burned] = worker.Record{Number: burned, Address: "gone:1", Nonce: "gone", Bound: last, Released: true, Version: "1"}
		})
		n := w.node("a", two)
		if err := n.begin(); err != nil {
			t.Errorf("start: %v", err)
		}
		time.Sleep(time.Minute)
		if text := n.alarms.has(leaf.AlarmClaim); !strings.Contains(text, "1 of them past the end of the layout") {
			t.Errorf("alarm %q", text)
		}
		if r := w.records.record(burned); r.Nonce != "gone" {
			t.Errorf("the number past the end is claimed: %+v", r)
		}
		other.stop()
		time.Sleep(time.Minute)
		n.issue(10)
	})
}
