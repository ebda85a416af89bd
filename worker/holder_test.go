package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

func TestServesAfterTheClaim(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a").up()
		p := n.issue(1000)
		st := n.Status()
		if !st.Ready || st.State != worker.Serving || st.Number != p.Worker || !st.Confirmed {
			t.Errorf("status %+v", st)
		}
		if rec := w.records.record(p.Worker); rec.Bound != st.Bound || millis(p) >= st.Inner || st.Inner > st.Bound {
			t.Errorf("ID at %d, t=%d, T=%d, registry %+v", millis(p), st.Inner, st.Bound, rec)
		}
	})
}

// TestBoundsStayAhead: for an hour, every ID lies below what disk and registry held
// before it.
func TestBoundsStayAhead(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a").up()
		for range 3600 {
			p := n.issue(1)
			if st := n.Status(); millis(p) >= st.Inner || st.Inner > st.Bound || st.Bound > w.records.record(p.Worker).Bound {
				t.Fatalf("ID at %d, t=%d, T=%d, registry %d", millis(p), st.Inner, st.Bound, w.records.record(p.Worker).Bound)
			}
			time.Sleep(time.Second)
		}
	})
}

func TestRestart(t *testing.T) {
	for _, tt := range []struct {
		name  string
		kind  worker.Kind
		clean bool
		wipe  bool // the data directory is gone
		one   bool // there is only one number
		wait  time.Duration
	}{
		{name: "clean stop", clean: true, one: true, wait: 0},
		{name: "clean stop, new data directory", clean: true, wipe: true, one: true, wait: 0},
		{name: "crash", kind: worker.Fixed, one: true, wait: 3 * time.Second},
		{name: "crash, the only leased number", one: true, wait: 65*time.Second + 3*time.Second},
		{name: "crash, new data directory, other numbers are free", wipe: true, wait: 0},
		{name: "crash, new data directory, the only number", wipe: true, one: true, wait: 65*time.Second + 3*time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run(t, tt.kind, func(w *world) {
				n := w.node("a", func(c *worker.Config) {
					if tt.one {
						c.Numbers.Hi = 1
					}
				}).up()
				time.Sleep(10 * time.Second)
				before := n.issue(5000)
				bound := w.records.record(before.Worker).Bound
				if tt.clean {
					n.stop()
				} else {
					n.crash()
				}
				if tt.wipe {
					n.disk.set(func(d *disk) { d.files = map[string][]byte{} })
				}
				begin := time.Now()
				n.up()
				for !n.Status().Ready {
					if time.Since(begin) > 10*time.Minute {
						t.Fatalf("never ready: %+v", n.Status())
					}
					time.Sleep(10 * time.Millisecond)
				}
				if took := time.Since(begin); took > tt.wait+time.Second {
					t.Errorf("ready after %v, want about %v", took, tt.wait)
				}
				after := n.issue(5000)
				if tt.wipe && !tt.clean && after.Worker == before.Worker && millis(after) < bound {
					t.Errorf("a successor without the file issued at %d, below T=%d", millis(after), bound)
				}
			})
		})
	}
}

func TestClaimIsLost(t *testing.T) {
	for _, tt := range []struct {
		name string
		lose func(w *world, number int64)
	}{
		{"deleted", func(w *world, n int64) { w.records.set(func(r *records) { delete(r.byNum, n) }) }},
		{"overwritten", func(w *world, n int64) {
			w.records.set(func(r *records) {
				rec := r.byNum[n]
				rec.Nonce, rec.Version, rec.Address = "other", "other", "other:1"
				r.byNum[n] = rec
			})
		}},
		{"released by an operator", func(w *world, n int64) {
			if err := worker.NewPool(w.records).Free(w.t.Context(), n); err != nil {
				w.t.Fatal(err)
			}
		}},
		{"wiped", func(w *world, _ int64) {
			w.records.set(func(r *records) { r.ns, r.byNum = nil, map[int64]worker.Record{} })
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run(t, worker.Leased, func(w *world) {
				n := w.node("a").up()
				first := n.issue(100)
				last := n.Status()
				tt.lose(w, first.Worker)
				time.Sleep(4 * time.Second) // a renewal
				for !n.Status().Ready {
					time.Sleep(100 * time.Millisecond)
				}
				second := n.issue(10_000)
				if second.Worker == first.Worker && tt.name != "released by an operator" && tt.name != "deleted" && tt.name != "wiped" {
					t.Errorf("the lost worker ID %d is used again", second.Worker)
				}
				if st := n.Status(); st.Losses != 1 || !st.Confirmed || st.Number != second.Worker || st.Position < last.Position {
					t.Errorf("status after the loss: %+v", st)
				}
				if text := n.alarms.has(leaf.AlarmClaim); text != "" {
					t.Errorf("alarm is still active: %s", text)
				}
			})
		})
	}
}

// TestLossStopsIssuing: between the loss and the next claim every call fails.
func TestLossStopsIssuing(t *testing.T) {
	for _, kind := range []worker.Kind{worker.Leased, worker.Fixed} {
		t.Run(kind.String(), func(t *testing.T) {
			run(t, kind, func(w *world) {
				n := w.node("a", func(c *worker.Config) { c.Numbers.Hi = 1 }).up()
				n.issue(10)
				w.records.set(func(r *records) {
					rec := r.byNum[0]
					rec.Nonce, rec.Version, rec.Address, rec.Bound = "other", "other", "other:1", rec.Bound+int64(time.Hour/time.Millisecond)
					r.byNum[0] = rec
				})
				time.Sleep(4 * time.Second)
				n.refuses(leaf.ErrNotReady)
				if n.alarms.has(leaf.AlarmClaim) == "" {
					t.Error("no alarm")
				}
				// Nor from the file once the registry is down, in this process or the next.
				w.records.breakOff(true)
				time.Sleep(10 * time.Second)
				n.refuses(leaf.ErrNotReady)
				n.crash()
				n.up()
				n.refuses(leaf.ErrNotReady)
			})
		})
	}
}

func TestRegistryIsDown(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a").up()
		time.Sleep(5 * time.Second)
		w.records.breakOff(true)
		end := w.records.record(n.Status().Number).Bound
		issued := 0
		for range 100 {
			time.Sleep(time.Second)
			id, err := n.Next(w.t.Context(), "k")
			if err != nil {
				if !errors.Is(err, leaf.ErrNotReady) {
					t.Fatalf("error %v", err)
				}
				continue
			}
			issued++
			if p := w.take(id, "a"); millis(p) >= end {
				t.Fatalf("issued at %d, at or above T=%d", millis(p), end)
			}
		}
		if issued < 55 || issued > 61 {
			t.Errorf("%d seconds of IDs without the registry, want the horizon of about 60", issued)
		}
		if n.alarms.has(leaf.AlarmRegistry) == "" || n.Status().Ready {
			t.Errorf("no alarm, or ready: %+v", n.Status())
		}
		w.records.breakOff(false)
		time.Sleep(5 * time.Second)
		n.issue(1000)
		if text := n.alarms.has(leaf.AlarmRegistry); text != "" {
			t.Errorf("alarm is still active: %s", text)
		}
	})
}

func TestStartWithoutRegistry(t *testing.T) {
	for _, tt := range []struct {
		name   string
		kind   worker.Kind
		away   time.Duration // how long the node was down
		serves bool
	}{
		{"leased", worker.Leased, time.Second, false},
		{"fixed", worker.Fixed, time.Second, true},
		{"fixed, after T", worker.Fixed, 11 * time.Minute, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run(t, tt.kind, func(w *world) {
				n := w.node("a").up()
				n.issue(5000)
				bound := n.Status().Bound
				n.crash()
				w.records.breakOff(true)
				time.Sleep(tt.away)
				n.up()
				time.Sleep(4 * time.Second)
				if !tt.serves {
					n.refuses(leaf.ErrNotReady)
					w.records.breakOff(false)
					time.Sleep(2 * time.Second)
					n.issue(5000)
					return
				}
				n.issue(5000)
				if st := n.Status(); st.Confirmed || st.Bound != bound {
					t.Errorf("status %+v, want unconfirmed with T=%d", st, bound)
				}
				time.Sleep(2 * time.Minute)
				n.issue(5000)
				w.records.breakOff(false)
				time.Sleep(4 * time.Second)
				n.issue(5000)
				if st := n.Status(); !st.Confirmed || st.Bound <= bound || st.Losses != 0 {
					t.Errorf("status %+v, want confirmed", st)
				}
				time.Sleep(20 * time.Minute)
				n.issue(5000)
				n.stop()
				n.up().issue(5000)
			})
		})
	}
}

func TestPermanentErrors(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		w.node("a").up().issue(1)
		other := w.node("b", func(c *worker.Config) { c.Namespace = "other" })
		if err := other.begin(); !errors.Is(err, worker.ErrForeign) || !strings.Contains(err.Error(), "other") {
			t.Errorf("another namespace: %v", err)
		}
		layout := w.node("c", func(c *worker.Config) { c.Layout.Epoch++ })
		if err := layout.begin(); !errors.Is(err, worker.ErrForeign) {
			t.Errorf("another layout: %v", err)
		}
	})
}

func TestLostReplies(t *testing.T) {
	for lost := 1; lost <= 3; lost++ {
		run(t, worker.Leased, func(w *world) {
			w.records.set(func(r *records) { r.lose = lost })
			n := w.node("a").up()
			time.Sleep(2 * time.Second)
			n.issue(1000)
			if used := w.records.used(); used != 1 {
				t.Errorf("%d numbers are taken, want 1", used)
			}
			w.records.set(func(r *records) { r.lose = lost })
			time.Sleep(20 * time.Second)
			n.issue(1000)
			if st := n.Status(); st.Losses != 0 || !st.Ready {
				t.Errorf("status %+v", st)
			}
			w.records.set(func(r *records) { r.lose = 1 })
			if err := n.Close(w.t.Context()); err == nil {
				t.Error("no error for a release without an answer")
			}
			w.node("b", func(c *worker.Config) { c.Numbers.Hi = 4 }).up().issue(1000)
		})
	}
}

func TestStandby(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		pair := func(c *worker.Config) { c.Numbers.Hi, c.Standby = 1, true }
		a := w.node("a", pair).up()
		a.issue(1000)
		b := w.node("b", pair).up()
		if st := b.Status(); st.State != worker.Standby || st.Ready || len(b.alarms.list()) != 0 {
			t.Errorf("standby: %+v, alarms %v", st, b.alarms.list())
		}
		b.refuses(leaf.ErrNotReady)
		if _, err := b.Next(w.t.Context(), "key"); worker.Cause(err) == nil || strings.Contains(err.Error(), worker.Cause(err).Error()) {
			t.Errorf("a client of the standby hears %v, cause %v", err, worker.Cause(err))
		}
		a.stop()
		time.Sleep(4 * time.Second)
		b.issue(1000)
		b.crash()
		bound := w.records.record(0).Bound
		a.up()
		for !a.Status().Ready {
			a.refuses(leaf.ErrNotReady)
			time.Sleep(time.Second)
		}
		if p := a.issue(1000); millis(p) < bound {
			t.Errorf("took over at %d, below T=%d", millis(p), bound)
		}
	})
}

func TestFullRegistrySaysSo(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		for _, name := range []string{"a", "b", "c", "d"} {
			w.node(name).up().issue(10)
		}
		e := w.node("e").up()
		e.refuses(leaf.ErrNotReady)
		e.says(worker.ErrFull, "all 4 worker IDs 0 to 3 are taken")
		if e.alarms.has(leaf.AlarmClaim) == "" {
			t.Error("no alarm")
		}
		synctest.Wait()
	})
}

// TestStopWhileWaiting: a node that is stopped before its floor says nothing of a clock
// that is behind.
func TestStopWhileWaiting(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a", func(c *worker.Config) { c.Fresh = false }).up()
		if st := n.Status(); st.State != worker.Waiting {
			t.Fatalf("status %+v", st)
		}
		time.Sleep(time.Second)
		n.stop()
		if text := n.alarms.has(leaf.AlarmClock); text != "" {
			t.Errorf("alarm %q", text)
		}
	})
}

// refuser is an Admission that lets no request wait.
type refuser struct{ asked int }

var errRefused = errors.New("too many wait")

func (r *refuser) Admit() error { r.asked++; return errRefused }

// TestAsksBeforeItWaits: a batch that must wait for the next unit of time asks whether it
// may, and an ID that is free now does not.
func TestAsksBeforeItWaits(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n, r := w.node("a").up(), &refuser{}
		ctx := context.WithValue(w.t.Context(), leaf.AdmissionKey{}, r)
		if _, err := n.Next(ctx, "k"); err != nil || r.asked != 0 {
			t.Errorf("Next: %v, asked %d times, want an ID unasked", err, r.asked)
		}
		if _, err := n.NextN(ctx, "k", 5000); !errors.Is(err, errRefused) || r.asked != 1 {
			t.Errorf("NextN: %v, asked %d times, want the refusal", err, r.asked)
		}
	})
}

// TestSaturatedAtTheDeadline: a batch of more than one millisecond's IDs, with a
// deadline before the next one, is out of stock and not out of order.
func TestSaturatedAtTheDeadline(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a").up()
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Microsecond)
		defer cancel()
		if _, err := n.NextN(ctx, "k", 5000); !errors.Is(err, leaf.ErrExhausted) {
			t.Errorf("error %v, want ErrExhausted", err)
		}
		n.issue(5000)
	})
}
