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

// TestMomentOfALossStays: a node that lost its number with the registry asks again and again
// while all numbers are taken. The moment from which numbers without a record may be used
// stays where its first attempt put it; a number would else never come into use.
func TestMomentOfALossStays(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		one := func(c *worker.Config) { c.Numbers = leaf.Range{Lo: 0, Hi: 1} }
		a := w.node("a", one).up()
		a.issue(1)
		w.records.set(func(r *records) { r.ns, r.byNum = nil, map[int64]worker.Record{} })
		if err := worker.NewPool(w.records).Init(t.Context(), worker.NewNamespace("test", a.cfg.Layout, 0)); err != nil {
			t.Fatal(err)
		}
		other := w.node("other", one)
		if err := other.begin(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		if state := a.Status().State; state != worker.Refused {
			t.Fatalf("the node without a number is %s", state)
		}
		from := w.records.namespace().IssueFrom
		time.Sleep(2 * time.Minute)
		if again := w.records.namespace().IssueFrom; from == 0 || again != from {
			t.Errorf("numbers may be used from %d on, then from %d", from, again)
		}
	})
}
