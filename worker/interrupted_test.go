package worker_test

import (
	"bytes"
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

// TestStopDuringAWrite: Close must not say that all has ended while a write of the file is
// under way. The data directory would be unlocked, and the write could replace the file of
// the next process: with the layout seconds, a third process would then repeat IDs of the second.
func TestStopDuringAWrite(t *testing.T) {
	for _, tt := range []struct {
		name string
		when time.Duration // after the start
		keep bool
		lost bool // the number, so that the write notes the loss
	}{
		{"the first write", 0, false, false},
		{"a later write", 2100 * time.Millisecond, false, false},
		{"a later write, the number is kept", 2100 * time.Millisecond, true, false},
		{"the write after a loss", 2100 * time.Millisecond, false, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run(t, worker.Fixed, func(w *world) {
				n := w.node("a", func(c *worker.Config) { c.KeepOnStop, c.Layout = tt.keep, snowflake.Seconds() })
				hang := make(chan struct{})
				time.AfterFunc(tt.when, func() { n.disk.set(func(d *disk) { d.hang = hang }) })
				h, err := worker.New(worker.NewPool(w.records), n.disk, n.cfg)
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Millisecond)
				go func() { _ = h.Start(w.t.Context()) }()
				time.Sleep(tt.when + 1100*time.Millisecond)
				if tt.lost {
					if err := worker.NewPool(w.records).Free(w.t.Context(), h.Status().Number); err != nil {
						t.Fatal(err)
					}
					time.Sleep(4 * time.Second)
				}
				ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
				defer cancel()
				begun := time.Now()
				if err := h.Close(ctx); err == nil || ctx.Err() == nil {
					t.Errorf("Close returned %v after %v while a write is under way", err, time.Since(begun))
				}
				n.disk.set(func(d *disk) {
					if d.users != 1 {
						t.Error("the file is free for another Holder while a write is under way")
					}
				})
				close(hang)
			})
		})
	}
}

// TestStopOnASlowDisk: a clean stop in the middle of a write that takes 20 ms is no trouble
// of the disk: the number is released or kept, and no alarm begins.
func TestStopOnASlowDisk(t *testing.T) {
	for name, keep := range map[string]bool{"released": false, "kept": true} {
		t.Run(name, func(t *testing.T) {
			run(t, worker.Fixed, func(w *world) {
				n := w.node("a", func(c *worker.Config) { c.KeepOnStop, c.Numbers.Hi = keep, 1 })
				began := &history{alarms: n.alarms}
				n.cfg.Alarms = began
				n.up().issue(10)
				hang := make(chan struct{})
				n.disk.set(func(d *disk) { d.hang = hang })
				time.Sleep(time.Second + time.Millisecond)
				time.AfterFunc(20*time.Millisecond, func() {
					n.disk.set(func(d *disk) { d.hang = nil })
					close(hang)
				})
				n.stop()
				if got := w.records.record(0).Released; got == keep {
					t.Errorf("released: %v", got)
				}
				for _, a := range began.all {
					if a.Code == leaf.AlarmDisk {
						t.Errorf("alarm %s: %s", a.Code, a.Text)
					}
				}
				n.up()
				time.Sleep(4 * time.Second)
				n.issue(10)
			})
		})
	}
}

// history keeps every alarm that was raised.
type history struct {
	*alarms

	all []leaf.Alarm
}

func (h *history) Raise(a leaf.Alarm) {
	h.mu.Lock()
	h.all = append(h.all, a)
	h.mu.Unlock()
	h.alarms.Raise(a)
}

// closing begins Close when a claim has succeeded, before its answer arrives.
type closing struct {
	worker.Registry

	stop func()
}

func (c closing) Claim(ctx context.Context, req worker.Request) (worker.Record, error) {
	own, err := c.Registry.Claim(ctx, req)
	if err == nil {
		go c.stop()
		time.Sleep(time.Millisecond)
	}
	return own, err
}

// TestStopDuringAClaim: the number of a claim that succeeds while Close begins is released.
func TestStopDuringAClaim(t *testing.T) {
	for _, kind := range []worker.Kind{worker.Leased, worker.Fixed} {
		t.Run(kind.String(), func(t *testing.T) {
			run(t, kind, func(w *world) {
				n := w.node("a", func(c *worker.Config) { c.Numbers.Hi = 1 })
				done := make(chan error, 1)
				var h *worker.Holder
				h, err := worker.New(closing{worker.NewPool(w.records), func() { done <- h.Close(w.t.Context()) }}, n.disk, n.cfg)
				if err != nil {
					t.Fatal(err)
				}
				_ = h.Start(w.t.Context())
				if err := <-done; err != nil {
					t.Errorf("close: %v", err)
				}
				if r := w.records.record(0); !r.Released {
					t.Errorf("the number stays claimed: %+v", r)
				}
				if text := n.alarms.has(leaf.AlarmDisk); text != "" {
					t.Errorf("alarm of the disk: %s", text)
				}
			})
		})
	}
}

// TestEndAroundAConfirmation: a process starts from its file in an outage, and ends around
// the moment at which the registry learns of it. The next process proves that the number
// is its own, whether the answer came, and whether the file was written since: it does not wait for T.
func TestEndAroundAConfirmation(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lose  bool // the answer to the confirmation, and the registry stays away
		stop  bool // else it is killed
		keep  bool
		again int // further processes that start from the file, and end, while the registry is away
	}{
		{"confirmed, then killed", false, false, true, 0},
		{"confirmed, then stopped", false, true, true, 0},
		{"no answer, then killed", true, false, false, 0},
		{"no answer, then stopped", true, true, false, 0},
		{"no answer, and two more processes", true, false, false, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run(t, worker.Fixed, func(w *world) {
				n := w.node("a", func(c *worker.Config) { c.Numbers.Hi, c.KeepOnStop = 1, tt.keep })
				n.up().issue(10)
				n.crash()
				w.records.breakOff(true)
				time.Sleep(5 * time.Second)
				n.up().issue(10)
				time.Sleep(10 * time.Second)
				if writes := w.records.writes(); tt.lose {
					w.records.set(func(r *records) { r.down, r.lose = nil, 1 })
					for w.records.writes() == writes {
						time.Sleep(time.Millisecond)
					}
					w.records.breakOff(true)
				} else {
					w.records.breakOff(false)
					for !n.Status().Confirmed {
						time.Sleep(time.Millisecond)
					}
				}
				n.issue(10)
				if tt.stop {
					_ = n.stopped()
				} else {
					n.crash()
				}
				for range tt.again {
					time.Sleep(5 * time.Second)
					n.up().issue(10)
					n.crash()
				}
				w.records.breakOff(false)
				if err := n.begin(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Second)
				n.issue(10)
			})
		})
	}
}

// unsure lets the next renewal fail with an error.
type unsure struct {
	worker.Registry

	next chan error
}

func (u unsure) Renew(ctx context.Context, own worker.Record, bound int64) (worker.Record, error) {
	select {
	case err := <-u.next:
		return own, err
	default:
		return u.Registry.Renew(ctx, own, bound)
	}
}

// TestRegistryThatCannotBeUsed: a renewal that the registry refuses for a reason that is not
// about the claim, such as a table that is renamed for a moment, costs nothing. A claim that
// is reported as lost although its record is as it was costs no wait for T.
func TestRegistryThatCannotBeUsed(t *testing.T) {
	for _, tt := range []struct {
		err  error
		lost int64
	}{
		{worker.ErrSchema, 0},
		{leaf.ErrConflict, 0},
		{leaf.ErrBadRequest, 0},
		{worker.ErrLost, 1},
	} {
		for _, kind := range []worker.Kind{worker.Leased, worker.Fixed} {
			t.Run(kind.String()+"/"+tt.err.Error(), func(t *testing.T) {
				run(t, kind, func(w *world) {
					n := w.node("a", func(c *worker.Config) { c.Numbers.Hi = 1 })
					u := unsure{worker.NewPool(w.records), make(chan error, 1)}
					if err := n.start(u); err != nil {
						t.Fatal(err)
					}
					n.issue(10)
					time.Sleep(time.Minute)
					u.next <- tt.err
					time.Sleep(10 * time.Second)
					synctest.Wait()
					n.issue(10)
					if got := n.Status().Losses; got != tt.lost {
						t.Errorf("losses %d, want %d", got, tt.lost)
					}
				})
			})
		}
	}
}

// refusing answers claims with an error while it has one.
type refusing struct {
	worker.Registry

	err atomic.Pointer[error]
}

func (r *refusing) Claim(ctx context.Context, req worker.Request) (worker.Record, error) {
	if err := r.err.Load(); err != nil {
		return worker.Record{}, *err
	}
	return r.Registry.Claim(ctx, req)
}

// TestAlarmOfAnUnconfirmedClaimStays: a node that runs from its file goes on while the
// registry answers that its tables are missing, and the alarm about that stays until it ends.
func TestAlarmOfAnUnconfirmedClaimStays(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		n := w.node("a", func(c *worker.Config) { c.Numbers.Hi = 1 })
		n.up().issue(10)
		n.crash()
		w.records.breakOff(true)
		time.Sleep(5 * time.Second)
		r := &refusing{Registry: worker.NewPool(w.records)}
		if err := n.start(r); err != nil {
			t.Fatal(err)
		}
		w.records.breakOff(false)
		schema := worker.ErrSchema
		r.err.Store(&schema)
		time.Sleep(10 * time.Second)
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			if n.alarms.has(leaf.AlarmRegistry) == "" {
				t.Fatal("no alarm about the registry")
			}
		}
		n.issue(10)
		r.err.Store(nil)
		time.Sleep(10 * time.Second)
		if text := n.alarms.has(leaf.AlarmRegistry); text != "" || !n.Status().Confirmed {
			t.Errorf("the registry is well: alarm %q, confirmed %v", text, n.Status().Confirmed)
		}
		n.issue(10)
	})
}

// TestInterruptedWriteIsMadeUp: a stop that keeps the number interrupts a write that fails. The
// file then gets what it lacked, so that the next process may start from it in an outage.
func TestInterruptedWriteIsMadeUp(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		n := w.node("a", func(c *worker.Config) { c.KeepOnStop, c.Numbers.Hi = true, 1 }).up()
		n.issue(10)
		before := n.disk.content()
		n.disk.set(func(d *disk) { d.err = errors.New("input/output error") })
		time.Sleep(2 * time.Second)
		n.disk.set(func(d *disk) { d.err = nil })
		n.stop()
		if after := n.disk.content(); bytes.Equal(before, after) {
			t.Errorf("the file stays as it was before the trouble: %s", after)
		}
	})
}

// TestEndBeforeTheFirstWrite: a process ends after the registry has answered its claim and before
// its first write, here because the disk was full. The next process does not wait for T.
func TestEndBeforeTheFirstWrite(t *testing.T) {
	for _, when := range []string{"before the claim", "after the claim"} {
		t.Run(when, func(t *testing.T) {
			run(t, worker.Fixed, func(w *world) {
				n := w.node("a", func(c *worker.Config) { c.Numbers.Hi = 1 })
				n.up().issue(10)
				n.crash()
				time.Sleep(10 * time.Second)
				full := func() { n.disk.set(func(d *disk) { d.err = errors.New("no space left on device") }) }
				if when == "before the claim" {
					full()
				}
				if err := n.start(fills{worker.NewPool(w.records), full}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Second)
				if text := n.alarms.has(leaf.AlarmDisk); text == "" {
					t.Error("no alarm about the disk")
				}
				n.crash()
				n.disk.set(func(d *disk) { d.err = nil })
				if err := n.begin(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Second)
				n.issue(10)
			})
		})
	}
}

// TestNameThatReportedAnError: the write that names a claim takes effect and reports an error.
// The registry refuses the claim, so nothing else is written. The nonce is written again, because
// it may not be durable, and the alarm about the disk ends.
func TestNameThatReportedAnError(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		n := w.node("a", func(c *worker.Config) { c.Numbers.Hi = 1 })
		n.up().issue(10)
		n.crash()
		time.Sleep(10 * time.Second)
		n.disk.set(func(d *disk) { d.late = errors.New("input/output error") })
		r := &refusing{Registry: worker.NewPool(w.records)}
		schema := worker.ErrSchema
		r.err.Store(&schema)
		if err := n.start(r); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if text := n.alarms.has(leaf.AlarmDisk); text == "" {
			t.Error("no alarm about the disk")
		}
		n.disk.set(func(d *disk) { d.late = nil })
		time.Sleep(20 * time.Second)
		if text := n.alarms.has(leaf.AlarmDisk); text != "" {
			t.Errorf("the disk is well, and the alarm says: %s", text)
		}
	})
}

// fills lets the disk become full when a claim has succeeded.
type fills struct {
	worker.Registry

	full func()
}

func (f fills) Claim(ctx context.Context, req worker.Request) (worker.Record, error) {
	own, err := f.Registry.Claim(ctx, req)
	if err == nil {
		f.full()
	}
	return own, err
}
