package worker_test

import (
	"maps"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// placed is a registry of fixed numbers with a place of its own.
type placed struct {
	worker.Registry

	info worker.Info
}

func (p placed) Info() worker.Info { return p.info }

// TestFileOfAMovedRegistry: a node that is moved to another path or cluster, which does
// not answer, does not go on from its file: there the number may be another node's.
func TestFileOfAMovedRegistry(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*worker.Info)
		serves bool
	}{
		{"the same", func(*worker.Info) {}, true},
		{"a server was added", func(i *worker.Info) { i.Servers = "zk0:2181,zk2:2181" }, true},
		{"another path", func(i *worker.Info) { i.Place = "/b/snowflake/leaf" }, false},
		{"another cluster", func(i *worker.Info) { i.Servers = "zk8:2181,zk9:2181" }, false},
		{"another kind", func(i *worker.Info) { i.Name = "other" }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run(t, worker.Fixed, func(w *world) {
				n := w.node("a")
				begin := func(info worker.Info) {
					h, err := worker.New(placed{worker.NewPool(w.records), info}, n.disk, n.cfg)
					if err != nil {
						t.Fatal(err)
					}
					n.Holder = h
					w.t.Cleanup(n.crash)
					if err := h.Start(w.t.Context()); err != nil {
						t.Fatal(err)
					}
					time.Sleep(4 * time.Second)
				}
				info := worker.Info{Name: "zk", Kind: worker.Fixed, Shared: true, Place: "/a/snowflake/leaf", Servers: "zk1:2181,zk2:2181"}
				begin(info)
				n.issue(10)
				n.crash()
				w.records.breakOff(true)
				tt.change(&info)
				begin(info)
				if tt.serves {
					n.issue(10)
				} else {
					n.refuses(leaf.ErrNotReady)
				}
			})
		})
	}
}

// TestRecordsAreGone: somebody deletes the records of all numbers under their owners. No
// node starts beside an owner that has not noticed.
func TestRecordsAreGone(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		a := w.node("a", func(c *worker.Config) { c.Numbers.Hi = 1 }).up()
		a.issue(10)
		w.records.cut("a:8080", true)
		w.records.set(func(r *records) { r.byNum = map[int64]worker.Record{} })
		b := w.node("b", func(c *worker.Config) { c.Numbers.Hi, c.Fresh = 1, false }).up()
		for range 50 {
			time.Sleep(time.Second)
			if id, err := a.Next(w.t.Context(), "k"); err == nil {
				w.take(id, "a")
			}
			b.says(leaf.ErrNotReady, "may be used from")
		}
		time.Sleep(40 * time.Second)
		b.issue(10)
	})
}

// TestLossIsRemembered: a node that held a number finds the registry made anew and
// declared new, without any record. It knows better, and the others learn it from there.
func TestLossIsRemembered(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		ns := worker.NewNamespace("test", w.node("x").cfg.Layout, 0)
		a := w.node("a").up()
		a.issue(10)
		w.records.set(func(r *records) { r.ns, r.byNum = nil, map[int64]worker.Record{} })
		if err := worker.NewPool(w.records).Init(w.t.Context(), ns); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		a.says(leaf.ErrNotReady, "may be used from")
		from := w.records.namespace().IssueFrom
		if least := a.clock.Now().Add(50 * time.Second).UnixMilli(); from < least {
			t.Errorf("the namespace lets numbers be used from %d on, want %d at least", from, least)
		}
		w.node("b", func(c *worker.Config) { c.Fresh = false }).up().says(leaf.ErrNotReady, "may be used from")
		if again := w.records.namespace().IssueFrom; again != from {
			t.Errorf("the moment moved from %d to %d", from, again)
		}
		time.Sleep(80 * time.Second)
		a.issue(10)
	})
}

// TestNamespaceIsReplaced: a claim does not outlive its namespace, although its record is
// still there: what stands there now may have another layout.
func TestNamespaceIsReplaced(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		a := w.node("a").up()
		a.issue(10)
		w.records.set(func(r *records) { r.ns = nil })
		other := w.node("b", func(c *worker.Config) { c.Fresh = false; c.Layout.Epoch += 1000 }).up()
		time.Sleep(4 * time.Second)
		a.refuses(leaf.ErrNotReady)
		other.says(leaf.ErrNotReady, "may be used from")
	})
}

// TestRegistryGoesBack: a registry fails over to a replica that lacks the last commits. Both claims are lost, and
// the records of the owners before stand there. The node that reaches the registry finds that its T was set back,
// so other records were, too: it takes no number that the node which is cut off may issue with, and tells the
// nodes that start (rule U).
func TestRegistryGoesBack(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		two := func(c *worker.Config) { c.Numbers.Hi = 2 }
		x, y := w.node("x", two).up(), w.node("y", two).up()
		x.stop()
		y.stop()
		var before map[int64]worker.Record
		w.records.set(func(r *records) { before = maps.Clone(r.byNum) })
		time.Sleep(time.Second)
		a, b := w.node("a", two).up(), w.node("b", two)
		b.far = &island{records: w.records}
		b.up()
		a.issue(1)
		b.issue(1)
		b.far.off.Store(true)
		w.records.set(func(r *records) { r.byNum = before })
		time.Sleep(5 * time.Second) // a has renewed
		c := w.node("c", two, func(c *worker.Config) { c.Fresh = false }).up()
		for range 50 {
			a.says(leaf.ErrNotReady, "may be used from")
			c.says(leaf.ErrNotReady, "may be used from")
			b.issue(1)
			time.Sleep(time.Second)
		}
		time.Sleep(40 * time.Second)
		b.refuses(leaf.ErrNotReady)
		a.issue(1)
		c.issue(1)
	})
}
