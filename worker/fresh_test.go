package worker_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// TestFreshNodeNoticesALoss: the node whose start created the registry gets no number for a while. Another node takes one
// meanwhile, and its record is deleted. The number waits for the first node, too.
func TestFreshNodeNoticesALoss(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		one := func(c *worker.Config) { c.Numbers.Hi = 1 }
		a, b := w.node("a", one), w.node("b", one)
		w.records.cut("a:8080", true)
		if err := a.begin(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		b.up().issue(10)
		w.records.set(func(r *records) {
			r.byNum = map[int64]worker.Record{}
			r.off["a:8080"], r.off["b:8080"] = false, true
		})
		time.Sleep(time.Second)
		a.says(leaf.ErrNotReady, "may be used from")
		b.issue(10)
	})
}

// TestFreshCountsOnceBesideADiskThatFails: the node had a number, and could not write it to its disk. The registry is wiped after
// that, when another node may have had the number.
func TestFreshCountsOnceBesideADiskThatFails(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		a := w.node("a")
		a.disk.set(func(d *disk) { d.err = errors.New("full") })
		if err := a.begin(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		w.records.set(func(r *records) { r.ns, r.byNum = nil, map[int64]worker.Record{} })
		a.disk.set(func(d *disk) { d.err = nil })
		time.Sleep(5 * time.Second)
		a.says(leaf.ErrNotReady, "may be used from")
	})
}
