package worker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// fromFile starts a on its file while it cannot reach the registry.
func fromFile(w *world, change func(*worker.Config)) *node {
	w.t.Helper()
	a := w.node("a", change)
	a.far = &island{records: w.records}
	a.up().issue(10)
	a.crash()
	a.far.off.Store(true)
	a.up()
	time.Sleep(4 * time.Second)
	a.issue(10)
	if a.Status().Confirmed {
		w.t.Fatal("a is not on its file")
	}
	return a
}

// TestConfirmationAfterAnotherOwner: a node on its file comes back when somebody else
// has had the number and given it back. Its generator knows nothing of what that one
// issued, so it must not go on, whatever its clock says.
func TestConfirmationAfterAnotherOwner(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		one := func(c *worker.Config) { c.Numbers.Hi, c.Horizon = 1, time.Minute }
		a := fromFile(w, one)
		time.Sleep(70 * time.Second) // T and the margin
		b := w.node("b", one).up()
		time.Sleep(20 * time.Second)
		last := b.issue(5000)
		b.stop()

		a.clock.step(-10 * time.Second)
		a.far.off.Store(false)
		for range 300 {
			time.Sleep(100 * time.Millisecond)
			if id, err := a.Next(w.t.Context(), "k"); err == nil {
				if p := w.take(id, "a"); millis(p) <= millis(last) {
					t.Fatalf("a issued at %d, b before at %d", millis(p), millis(last))
				}
			}
		}
		a.issue(5000)
		if st := a.Status(); !st.Confirmed || st.Losses != 1 {
			t.Errorf("status %+v", st)
		}
	})
}

// TestConfirmationGetsAnotherNumber: the number of a node on its file is gone. The
// registry gives it another one, which it goes on with: nobody else could.
func TestConfirmationGetsAnotherNumber(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		a := fromFile(w, func(c *worker.Config) { c.Numbers.Hi = 1 })
		a.crash()
		if err := worker.NewPool(w.records).Free(w.t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		w.node("b", func(c *worker.Config) { c.Numbers.Hi = 1 }).up()
		a.cfg.Numbers.Hi = 2
		a.up()
		time.Sleep(2 * time.Second)
		a.far.off.Store(false)
		time.Sleep(10 * time.Second)
		if p := a.issue(5000); p.Worker != 1 {
			t.Errorf("a issues with number %d", p.Worker)
		}
	})
}

// TestConfirmationBurnsNoOtherNumber: the T of a node's file is from a time when its
// clock was an hour ahead. Another number that the registry gives it does not get it.
func TestConfirmationBurnsNoOtherNumber(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		a := w.node("a")
		a.far = &island{records: w.records}
		a.clock.step(time.Hour)
		first := a.up().issue(10)
		a.crash()
		a.clock.step(-time.Hour)
		a.far.off.Store(true)
		if err := a.begin(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		a.far.off.Store(false)
		time.Sleep(10 * time.Second)
		p := a.issue(10)
		if soon := a.clock.Now().Add(11 * time.Minute).UnixMilli(); p.Worker == first.Worker || w.records.record(p.Worker).Bound > soon {
			t.Errorf("number %d has T %v ahead", p.Worker, time.UnixMilli(w.records.record(p.Worker).Bound).Sub(a.clock.Now()))
		}
	})
}

// TestOldCopyOfTheFile: a file that was rolled back says that less was issued than the
// last renewal did. It is not believed.
func TestOldCopyOfTheFile(t *testing.T) {
	{
		run(t, worker.Fixed, func(w *world) {
			a := w.node("a", func(c *worker.Config) { c.Numbers.Hi, c.Horizon = 1, time.Minute }).up()
			time.Sleep(10 * time.Second)
			old, err := a.disk.ReadFile(fileName)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Second)
			last := a.issue(5000)
			time.Sleep(4 * time.Second) // a renewal
			a.crash()
			a.disk.put(old)
			a.clock.step(-15 * time.Second)
			if err := a.begin(); err != nil {
				t.Fatal(err)
			}
			for range 120 {
				time.Sleep(time.Second)
				if id, err := a.Next(w.t.Context(), "k"); err == nil {
					if p := w.take(id, "a"); millis(p) <= millis(last) {
						t.Fatalf("issued at %d, and before at %d", millis(p), millis(last))
					}
				}
			}
			a.issue(5000)
		})
	}
}

// TestFreshCountsOnce: a registry that this very start created needs no quiet time; one
// that was wiped since does, because others may not know it yet.
func TestFreshCountsOnce(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		a := w.node("a").up()
		a.issue(10)
		w.records.set(func(r *records) { r.ns, r.byNum = nil, map[int64]worker.Record{} })
		time.Sleep(20 * time.Second)
		a.says(leaf.ErrNotReady, "may be used from")
		time.Sleep(55 * time.Second) // 75 s of 15 + 60 + 5
		a.says(leaf.ErrNotReady, "may be used from")
		time.Sleep(10 * time.Second)
		a.issue(10)
	})
}

// TestFreshCountsOnceInALongSearch: the moment of a node's loss has long passed when the
// registry is wiped, but another node may still issue with what it had there.
func TestFreshCountsOnceInALongSearch(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		two := func(c *worker.Config) { c.Numbers.Hi = 2 }
		a, b := w.node("a", two).up(), w.node("b", two).up()
		w.records.set(func(r *records) { // an operator frees a's number, and another node takes it
			for number, rec := range r.byNum {
				if rec.Address == a.cfg.Address {
					rec.Address, rec.Nonce, rec.Bound = "c:8080", "c", rec.Bound+time.Hour.Milliseconds()
					r.version++
					rec.Version = fmt.Sprint(r.version)
					r.byNum[number] = rec
				}
			}
		})
		time.Sleep(5 * time.Minute)
		a.says(leaf.ErrNotReady, "are taken")
		b.issue(10)
		w.records.set(func(r *records) { r.ns, r.byNum = nil, map[int64]worker.Record{} })
		time.Sleep(20 * time.Second)
		a.says(leaf.ErrNotReady, "may be used from")
	})
}

// TestConfirmationWaitsForTheClock: a clock that jumped is no reason to lose the number.
func TestConfirmationWaitsForTheClock(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		a := fromFile(w, func(*worker.Config) {})
		a.clock.step(time.Hour)
		a.far.off.Store(false)
		time.Sleep(20 * time.Second)
		a.refuses(leaf.ErrClock)
		a.clock.step(-time.Hour)
		time.Sleep(5 * time.Second)
		a.issue(10)
		if st := a.Status(); !st.Confirmed || st.Losses != 0 {
			t.Errorf("status %+v", st)
		}
	})
}
