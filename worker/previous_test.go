package worker_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// asked is a registry that remembers what its claimers say about their last claim.
type asked struct {
	worker.Registry

	mu       sync.Mutex
	previous []worker.Previous
}

func (a *asked) Claim(ctx context.Context, req worker.Request) (worker.Record, error) {
	if req.Previous != nil {
		a.mu.Lock()
		a.previous = append(a.previous, *req.Previous)
		a.mu.Unlock()
	}
	return a.Registry.Claim(ctx, req)
}

func (a *asked) last() worker.Previous {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.previous) == 0 {
		return worker.Previous{}
	}
	return a.previous[len(a.previous)-1]
}

// TestPreviousNamesItsNamespace: whichever way a process loses a number, its next claim
// says in which namespace it had it. A registry that knows only the next one has lost
// what others were given.
func TestPreviousNamesItsNamespace(t *testing.T) {
	for _, tt := range []struct {
		name string
		kind worker.Kind
		lose func(w *world, n *node, begin func())
	}{
		{"found lost", worker.Fixed, func(w *world, _ *node, _ func()) {
			w.records.set(func(r *records) { r.ns, r.byNum = nil, map[int64]worker.Record{} })
		}},
		{"released ahead of the clock", worker.Leased, func(_ *world, n *node, _ func()) { n.clock.step(-30 * time.Second) }},
		{"from the file, confirmed later", worker.Fixed, func(w *world, n *node, begin func()) {
			n.crash()
			w.records.breakOff(true)
			begin()
			w.records.breakOff(false)
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run(t, tt.kind, func(w *world) {
				n := w.node("a")
				registry := &asked{Registry: worker.NewPool(w.records)}
				begin := func() {
					h, err := worker.New(registry, n.disk, n.cfg)
					if err != nil {
						t.Fatal(err)
					}
					n.Holder = h
					w.t.Cleanup(n.crash)
					if err := h.Start(w.t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				begin()
				n.issue(1)
				time.Sleep(5 * time.Second)
				want := w.records.namespace().Incarnation
				tt.lose(w, n, begin)
				time.Sleep(5 * time.Second)
				if got := registry.last(); got.Incarnation != want {
					t.Errorf("the claim after it says %+v; want the incarnation %q", got, want)
				}
			})
		})
	}
}

// TestNumberIsAnothersInTheNewNamespace: a registry is wiped and declared new under two
// nodes, one of which is cut off. A third node takes the first one's number before that
// notices. The first one must not go on with the number of the second.
func TestNumberIsAnothersInTheNewNamespace(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		two := func(c *worker.Config) { c.Numbers.Hi = 2 }
		a := w.node("a", two).up()
		number := a.issue(1).Worker
		c := w.node("c", two)
		c.far = &island{records: w.records}
		c.up()
		c.issue(1)
		c.far.off.Store(true)
		w.records.set(func(r *records) { r.ns, r.byNum = nil, map[int64]worker.Record{} })
		if err := worker.NewPool(w.records).Init(w.t.Context(), worker.NewNamespace("test", a.cfg.Layout, 0)); err != nil {
			t.Fatal(err)
		}
		w.node("d", func(c *worker.Config) { c.Fresh, c.Numbers = false, leaf.Range{Lo: number, Hi: number + 1} }).up()
		time.Sleep(5 * time.Second)
		for range 50 {
			for _, n := range []*node{a, c} {
				if id, err := n.Next(w.t.Context(), "k"); err == nil {
					w.take(id, n.name)
				}
			}
			time.Sleep(time.Millisecond)
		}
		a.says(leaf.ErrNotReady, "may be used from")
	})
}
