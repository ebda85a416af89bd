package worker_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// TestStopInAnOutage: a clean stop while the registry does not answer costs no more than
// a kill. The next process issues once the file's t has passed, 3 s later, whether the registry
// is back or not. When the registry goes down between two calls of the stop, the same holds
// once it is back.
func TestStopInAnOutage(t *testing.T) {
	type step func(w *world, n *node, g *gate)
	stop := func(w *world, n *node, _ *gate) {
		if err := n.stopped(); err == nil {
			w.t.Error("no error for a number that is not released")
		}
	}
	kill := func(_ *world, n *node, _ *gate) { n.crash() }
	outage := func(w *world, _ *node, _ *gate) { w.records.breakOff(true) }
	back := func(w *world, _ *node, _ *gate) { w.records.breakOff(false) }
	idle := func(*world, *node, *gate) { time.Sleep(time.Minute) }
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"killed, registry back", []step{outage, kill, back}},
		{"killed, registry away", []step{outage, kill}},
		{"stopped, registry back", []step{outage, stop, back}},
		{"stopped, registry away", []step{outage, stop}},
		{"stopped after a minute without IDs, registry back", []step{idle, outage, stop, back}},
		{"stopped late in the outage, registry away", []step{outage, idle, stop}},
		{"stopped twice in one outage", []step{
			outage, stop,
			func(w *world, n *node, _ *gate) {
				n.restart(w.records)
				_ = n.stopped() // it has nothing to release
			},
		}},
		{"the release fails", []step{
			func(_ *world, _ *node, g *gate) { g.noRelease.Store(true) },
			stop,
		}},
		{"the release fails after a renewal without an answer", []step{
			func(w *world, _ *node, g *gate) {
				w.records.set(func(r *records) { r.lose = 1 })
				time.Sleep(3 * time.Second)
				g.noRelease.Store(true)
			},
			stop,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run(t, worker.Fixed, func(w *world) {
				n := w.node("a", func(c *worker.Config) { c.Numbers.Hi = 1 })
				g := &gate{Registry: worker.NewPool(w.records)}
				if err := n.start(g); err != nil {
					t.Fatal(err)
				}
				n.issue(5000)
				for _, s := range tt.steps {
					s(w, n, g)
				}
				n.restart(w.records)
				time.Sleep(4 * time.Second)
				n.issue(5000)
			})
		})
	}
}

// TestStopWithoutAnAnswer: when the registry has released the number and the node has not
// heard of it, another node may issue at once. The node that stopped must not go on from its file.
func TestStopWithoutAnAnswer(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		one := func(c *worker.Config) { c.Numbers.Hi = 1 }
		n := w.node("a", one)
		g := &gate{Registry: worker.NewPool(w.records)}
		if err := n.start(g); err != nil {
			t.Fatal(err)
		}
		n.issue(5000)
		g.mute.Store(true)
		if err := n.stopped(); err == nil {
			t.Error("no error for a release without an answer")
		}
		b := w.node("b", one).up()
		b.issue(5000)
		w.records.breakOff(true)
		n.restart(w.records)
		for range 20 {
			time.Sleep(time.Second)
			n.refuses(leaf.ErrNotReady)
			b.issue(5000)
		}
	})
}

// TestStopOfALostClaim: the claim was taken away during the stop. The file gives up the time up to T.
func TestStopOfALostClaim(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		n := w.node("a", func(c *worker.Config) { c.Numbers.Hi = 1 }).up()
		n.issue(5000)
		if err := worker.NewPool(w.records).Free(w.t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if err := n.stopped(); !errors.Is(err, worker.ErrLost) {
			t.Errorf("close: %v", err)
		}
		w.records.breakOff(true)
		n.restart(w.records)
		time.Sleep(4 * time.Second)
		n.refuses(leaf.ErrNotReady)
	})
}

// stopped is a clean stop that may fail.
func (n *node) stopped() error {
	h := n.Holder
	n.Holder = nil
	return h.Close(n.w.t.Context())
}

// restart starts the node's next process on the registry.
func (n *node) restart(r *records) {
	n.w.t.Helper()
	if err := n.start(worker.NewPool(r)); err != nil {
		n.w.t.Fatal(err)
	}
	synctest.Wait()
}

// gate is a registry that loses releases, or the answers to them.
type gate struct {
	worker.Registry

	noRelease, mute atomic.Bool
}

func (g *gate) Release(ctx context.Context, own worker.Record, floor int64) error {
	if g.noRelease.Load() {
		return errors.New("connection refused")
	}
	err := g.Registry.Release(ctx, own, floor)
	if g.mute.Load() {
		return errors.New("connection reset after the write")
	}
	return err
}

// later makes every claim after the first wait for the end of its context.
type later struct {
	worker.Registry

	claims atomic.Int64
}

func (l *later) Claim(ctx context.Context, req worker.Request) (worker.Record, error) {
	if l.claims.Add(1) > 1 {
		<-ctx.Done()
		return worker.Record{}, ctx.Err()
	}
	return l.Registry.Claim(ctx, req)
}

// TestStopAfterAFailedWrite: a claim succeeds and its first write to the disk fails. A stop
// during the next attempt releases the number all the same.
func TestStopAfterAFailedWrite(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		n := w.node("a", func(c *worker.Config) { c.Numbers.Hi = 1 })
		n.disk.set(func(d *disk) { d.err = errors.New("no space left on device") })
		if err := n.start(&later{Registry: worker.NewPool(w.records)}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(500 * time.Millisecond)
		n.disk.set(func(d *disk) { d.err = nil })
		n.stop()
		if r := w.records.record(0); !r.Released {
			t.Errorf("the number stays claimed: %+v", r)
		}
	})
}

// unanswered lets the first release reach the registry only when its context has ended.
type unanswered struct {
	worker.Registry

	began chan struct{}
	once  atomic.Bool
}

func (u *unanswered) Release(ctx context.Context, own worker.Record, floor int64) error {
	if u.once.Swap(true) {
		return u.Registry.Release(ctx, own, floor)
	}
	close(u.began)
	<-ctx.Done()
	return ctx.Err()
}

// TestStopWhileANumberIsGivenUp: a node gives its leased number up, because its clock is behind
// what was issued, and is stopped before the registry answers. The stop releases the number.
func TestStopWhileANumberIsGivenUp(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a")
		u := &unanswered{Registry: worker.NewPool(w.records), began: make(chan struct{})}
		if err := n.start(u); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		n.issue(10)
		number := n.Status().Number
		n.clock.step(-15 * time.Second)
		<-u.began
		n.stop()
		if r := w.records.record(number); !r.Released {
			t.Errorf("the number stays claimed: %+v", r)
		}
	})
}
