package worker_test

import (
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// TestLossIsCounted: the namespace counts the numbers that were given, and finds that a
// record is gone, whatever else happened to the records. A number whose owner lives is
// then not given before the quiet time.
func TestLossIsCounted(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before func(w *world, a *node)
		lose   func(r *records)
	}{
		{
			"an entry that nobody can read stands there instead",
			func(*world, *node) {},
			func(r *records) {
				r.byNum = map[int64]worker.Record{-1: {Number: -1, Damage: "etcd key claims/x does not end in a number"}}
			},
		},
		{
			"a record that nobody can read stands there instead",
			func(*world, *node) {},
			func(r *records) {
				r.byNum = map[int64]worker.Record{7: {Number: 7, Damage: "etcd key claims/7 is no record"}}
			},
		},
		{
			"the namespace is younger than the record",
			func(w *world, a *node) {
				w.records.set(func(r *records) { r.ns = nil })
				time.Sleep(150 * time.Second)
				a.issue(1)
			},
			func(r *records) { r.byNum = map[int64]worker.Record{} },
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run(t, worker.Leased, func(w *world) {
				one := func(c *worker.Config) { c.Numbers.Hi = 1 }
				a := w.node("a", one)
				a.far = &island{records: w.records}
				a.up()
				a.issue(1)
				tt.before(w, a)
				a.far.off.Store(true)
				w.records.set(tt.lose)
				b := w.node("b", one, func(c *worker.Config) { c.Fresh = false }).up()
				time.Sleep(time.Second)
				a.issue(1)
				b.says(leaf.ErrNotReady, "may be used from")
			})
		})
	}
}

// TestMendedRecordIsCounted: a record that could not be read, and was mended, counts again:
// its loss is seen.
func TestMendedRecordIsCounted(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		one := func(c *worker.Config) { c.Numbers.Hi = 1 }
		old := func(c *worker.Config) { c.Fresh = false }
		w.node("a", one).up().stop()
		var whole worker.Record
		w.records.set(func(r *records) {
			whole = r.byNum[0]
			r.byNum[0] = worker.Record{Number: 0, Damage: "etcd key claims/0 is no record"}
		})
		b := w.node("b", one, old).up()
		time.Sleep(time.Second)
		b.says(leaf.ErrNotReady, "")
		b.stop()
		w.records.set(func(r *records) { r.byNum[0] = whole })
		time.Sleep(time.Hour) // what the node before has noted is over
		c := w.node("c", one, old).up()
		time.Sleep(time.Minute)
		c.issue(1)
		c.stop()
		w.records.set(func(r *records) { r.byNum = map[int64]worker.Record{} })
		d := w.node("d", one, old).up()
		time.Sleep(time.Second)
		d.says(leaf.ErrNotReady, "may be used from")
	})
}
