package worker_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// pausing is the clock of a process that is stopped once, after one of the readings.
type pausing struct {
	*clock

	wall, elapsed atomic.Bool
	until         atomic.Int64  // end of the stop, on the test's clock
	slow          time.Duration // each reading of the wall clock takes so long
}

// stopped returns when the process runs, after a stop of an hour if now is true.
func (p *pausing) stopped(now bool) {
	if now {
		p.until.Store(time.Now().Add(time.Hour).UnixNano())
	}
	if left := p.until.Load() - time.Now().UnixNano(); left > 0 {
		time.Sleep(time.Duration(left))
	}
}

func (p *pausing) Now() time.Time {
	p.stopped(false)
	now := p.clock.Now()
	p.stopped(p.wall.Swap(false))
	time.Sleep(p.slow)
	return now
}

func (p *pausing) readElapsed() time.Duration {
	p.stopped(false)
	elapsed := p.clock.elapsed()
	p.stopped(p.elapsed.Swap(false))
	return elapsed
}

// TestStoppedBetweenTwoReadings: a process is stopped for an hour between its looks at
// the wall clock and at elapsed time. It must not take the difference for a jump.
func TestStoppedBetweenTwoReadings(t *testing.T) {
	for _, wall := range []bool{true, false} {
		run(t, worker.Leased, func(w *world) {
			a := w.node("a")
			p := &pausing{clock: a.clock}
			a.cfg.Runtime, a.cfg.Elapsed = p, p.readElapsed
			a.up()
			p.wall.Store(wall)
			p.elapsed.Store(!wall)
			time.Sleep(time.Hour)
			for range 1000 {
				time.Sleep(10 * time.Millisecond)
				if text := a.alarms.has(leaf.AlarmClock); text != "" {
					t.Fatal(text)
				}
			}
			if p.wall.Load() || p.elapsed.Load() {
				t.Fatal("nobody was stopped")
			}
			a.issue(10)
		})
	}
}

// TestStartReturnsWithIDs: after Start has returned, a caller gets IDs, also when the last
// step of the start was slow.
func TestStartReturnsWithIDs(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		a := w.node("a")
		a.cfg.Runtime = &pausing{clock: a.clock, slow: time.Millisecond}
		if err := a.begin(); err != nil {
			t.Fatal(err)
		}
		a.issue(10)
	})
}

// TestToleratedStepIsQuiet: callers wait out a step back of the clock within the tolerance.
// It raises no alarm, and the node stays ready.
func TestToleratedStepIsQuiet(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		a := w.node("a", func(c *worker.Config) { c.Tolerance, c.Ahead = time.Second, 30*time.Millisecond }).up()
		for range 20 {
			a.issue(1)
			a.clock.step(-900 * time.Millisecond)
			if st := a.Status(); !st.Ready && !strings.Contains(st.Reason, "used up") {
				t.Fatalf("status %+v", st)
			}
			time.Sleep(20 * time.Millisecond)
			if text := a.alarms.has(leaf.AlarmClock); text != "" {
				t.Fatal(text)
			}
			time.Sleep(2 * time.Second)
		}
	})
}

// TestRegistryAlarmEndsWithAnAnswer: also with one that refuses.
func TestRegistryAlarmEndsWithAnAnswer(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		one := func(c *worker.Config) { c.Numbers.Hi = 1 }
		w.node("a", one).up()
		w.records.breakOff(true)
		b := w.node("b", one).up()
		if b.alarms.has(leaf.AlarmRegistry) == "" {
			t.Error("no alarm")
		}
		w.records.breakOff(false)
		time.Sleep(time.Second)
		if text := b.alarms.has(leaf.AlarmRegistry); text != "" {
			t.Errorf("the registry answers, and the alarm says %q", text)
		}
		if text := b.alarms.has(leaf.AlarmClaim); !strings.Contains(text, "taken") {
			t.Errorf("alarm %q", text)
		}
	})
}

// TestStandbyAfterALossIsQuiet: a standby that had the claim waits like any other.
func TestStandbyAfterALossIsQuiet(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		a := w.node("a", func(c *worker.Config) { c.Numbers.Hi, c.Standby = 1, true }).up()
		w.records.set(func(r *records) {
			rec := r.byNum[0]
			rec.Nonce, rec.Version = "other", "other"
			r.byNum[0] = rec
		})
		time.Sleep(10 * time.Second)
		if st := a.Status(); st.State != worker.Standby || len(a.alarms.list()) != 0 {
			t.Errorf("status %+v, alarms %v", st, a.alarms.list())
		}
	})
}

// TestClockAlarmEndsWithItsCause: also if the claim is refused by then.
func TestClockAlarmEndsWithItsCause(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		a := w.node("a", func(c *worker.Config) { c.Numbers.Hi = 1 }).up()
		a.clock.step(time.Hour)
		w.records.set(func(r *records) {
			rec := r.byNum[0]
			rec.Nonce, rec.Version, rec.Bound = "other", "other", rec.Bound+int64(time.Hour/time.Millisecond)
			r.byNum[0] = rec
		})
		time.Sleep(10 * time.Second)
		a.refuses(leaf.ErrClock)
		a.clock.step(-time.Hour)
		time.Sleep(10 * time.Second)
		a.refuses(leaf.ErrNotReady)
		if text := a.alarms.has(leaf.AlarmClock); text != "" {
			t.Errorf("the clock is right, and the alarm says %q", text)
		}
	})
}

// TestEndOfLayoutSeenByAWrongClock: the alarm ends with the error of the clock.
func TestEndOfLayoutSeenByAWrongClock(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		a := w.node("a").up()
		by := a.cfg.Layout.End().Sub(a.clock.Now()) - 30*24*time.Hour
		a.clock.step(by)
		time.Sleep(10 * time.Second)
		a.clock.step(-by)
		time.Sleep(10 * time.Second)
		if text := a.alarms.has(leaf.AlarmExhausted); text != "" {
			t.Error(text)
		}
	})
}

// TestStartAfterClose: it returns.
func TestStartAfterClose(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		a := w.node("a")
		h, err := worker.New(worker.NewPool(w.records), a.disk, a.cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Close(w.t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
		defer cancel()
		if err := h.Start(ctx); err != nil {
			t.Error(err)
		}
		if err := h.Start(ctx); !errors.Is(err, leaf.ErrConflict) {
			t.Errorf("a second start: %v", err)
		}
	})
}

// hanging records never answer a write, nor a farewell.
type hanging struct {
	*records

	on atomic.Bool
}

func (h *hanging) Put(ctx context.Context, r worker.Record) (string, error) {
	if h.on.Load() {
		<-ctx.Done()
		return "", ctx.Err()
	}
	return h.records.Put(ctx, r)
}

func (h *hanging) Withdraw(ctx context.Context, _ worker.Peer) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestCloseOfAHangingRegistry: Close ends by itself, and until then calls hear that the
// node is stopping.
func TestCloseOfAHangingRegistry(t *testing.T) {
	for _, keep := range []bool{false, true} {
		run(t, worker.Leased, func(w *world) {
			a := w.node("a", func(c *worker.Config) { c.KeepOnStop = keep })
			reg := &hanging{records: w.records}
			h, err := worker.New(worker.NewPool(reg), a.disk, a.cfg)
			if err != nil {
				t.Fatal(err)
			}
			if err := h.Start(w.t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := h.Next(w.t.Context(), ""); err != nil {
				t.Errorf("right after Start: %v", err)
			}
			reg.on.Store(true)
			begin, done := time.Now(), make(chan error)
			go func() { done <- h.Close(context.Background()) }()
			time.Sleep(100 * time.Millisecond)
			_, err = h.Next(w.t.Context(), "")
			if !errors.Is(err, leaf.ErrNotReady) || !strings.Contains(err.Error(), "is closed: the node is stopping") {
				t.Errorf("while closing: %v", err)
			}
			if err := <-done; !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > 10*time.Second {
				t.Errorf("Close = %v after %v", err, time.Since(begin))
			}
		})
	}
}

// jumping is a clock that jumps ahead by a year at one of its readings.
type jumping struct {
	*clock

	left atomic.Int64
}

func (j *jumping) Now() time.Time {
	if j.left.Add(-1) == 0 {
		j.step(year)
	}
	return j.clock.Now()
}

// TestJumpAtAnyReading: whichever reading is the first that a jump meets, it gets into
// no T (rule F). The first two are at the start, where nothing tells what is right.
func TestJumpAtAnyReading(t *testing.T) {
	for reading := int64(3); reading <= 60; reading++ {
		run(t, worker.Leased, func(w *world) {
			a := w.node("a")
			limit := a.clock.Now().Add(5 * time.Minute).UnixMilli()
			j := &jumping{clock: a.clock}
			j.left.Store(reading)
			a.cfg.Runtime = j
			if err := a.begin(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			if j.left.Load() > 0 {
				t.Fatalf("no reading %d", reading)
			}
			for number := range int64(4) {
				if bound := w.records.record(number).Bound; bound > limit {
					t.Errorf("reading %d: worker ID %d is burnt until %v", reading, number, time.UnixMilli(bound).UTC())
				}
			}
		})
	}
}
