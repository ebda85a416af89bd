package worker_test

import (
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// TestReplacedAgainWhileRefused: a registry is wiped and declared new under a node, which
// then finds all numbers taken for longer than the quiet time. When the same happens again,
// it knows of the second loss, too: the owner that kept it waiting may live.
func TestReplacedAgainWhileRefused(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		one := func(c *worker.Config) { c.Numbers = leaf.Range{Lo: 0, Hi: 1} }
		a := w.node("a", one).up()
		a.issue(1)
		replace := func() {
			w.records.set(func(r *records) { r.ns, r.byNum = nil, map[int64]worker.Record{} })
			if err := worker.NewPool(w.records).Init(w.t.Context(), worker.NewNamespace("test", a.cfg.Layout, 0)); err != nil {
				t.Fatal(err)
			}
		}
		replace()
		other := w.node("other", one)
		other.far = &island{records: w.records}
		if err := other.begin(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute) // longer than lease, horizon and margin
		if state := a.Status().State; state != worker.Refused {
			t.Fatalf("the node without a number is %s", state)
		}
		other.issue(1)
		other.far.off.Store(true)
		replace()
		for range 60 {
			time.Sleep(time.Second)
			for _, n := range []*node{a, other} {
				if id, err := n.Next(w.t.Context(), "k"); err == nil {
					w.take(id, n.name)
				}
			}
		}
		a.says(leaf.ErrNotReady, "may be used from")
		time.Sleep(time.Minute)
		a.issue(1)
	})
}
