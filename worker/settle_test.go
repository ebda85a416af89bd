package worker_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

// TestAJumpThatStands: a node without peers that can tell believes a jump by itself once
// it has stood: for the limit, or for what it is longer than the horizon.
func TestAJumpThatStands(t *testing.T) {
	for _, kind := range []worker.Kind{worker.Leased, worker.Fixed} {
		for _, tt := range []struct{ jump, stands time.Duration }{
			{11 * time.Second, 10 * time.Second},
			{50 * time.Second, 10 * time.Second},
			{3 * time.Minute, 2 * time.Minute},
		} {
			for _, asks := range []bool{false, true} {
				run(t, kind, func(w *world) {
					n := w.node("a", func(c *worker.Config) {
						c.Horizon = time.Minute
						if asks {
							c.Clock = worker.ClockCheck{Ask: ask(nil, time.Millisecond), Self: c.Address}
						}
					}).up()
					n.issue(10)
					bound := n.Status().Bound
					n.clock.step(tt.jump)
					time.Sleep(tt.stands - time.Second)
					if st := n.Status(); st.Bound > bound+tt.stands.Milliseconds()+1000 || st.State == worker.Serving && st.Position > bound {
						t.Errorf("%v: believed before it stood for %v: %+v", tt.jump, tt.stands, st)
					}
					time.Sleep(10 * time.Second)
					n.issue(1000)
					if st, most := n.Status(), n.clock.Now().Add(time.Minute+time.Second).UnixMilli(); !st.Ready || st.Bound > most {
						t.Errorf("%v: %+v, T more than a horizon ahead: %v", tt.jump, st, st.Bound > most)
					}
					if text := n.alarms.has(leaf.AlarmClock); text != "" {
						t.Errorf("%v: alarm is still active: %s", tt.jump, text)
					}
				})
			}
		}
	}
}

// TestAJumpThatDoesNotStand: a clock that jumps about is not believed by adding up.
func TestAJumpThatDoesNotStand(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a").up()
		limit := n.clock.Now().Add(4 * time.Minute).UnixMilli()
		for range 8 {
			n.clock.step(40 * time.Second)
			time.Sleep(8 * time.Second)
			n.clock.step(-25 * time.Second)
			time.Sleep(8 * time.Second)
			if st := n.Status(); st.Bound > limit {
				t.Fatalf("T is at %v", time.UnixMilli(st.Bound).UTC())
			}
		}
	})
}

// TestStepBackTakesAnotherNumber: a leased node whose clock stepped back serves with
// another number within seconds, and leaves the old one at what it has issued.
func TestStepBackTakesAnotherNumber(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a").up()
		time.Sleep(5 * time.Second)
		old := n.issue(1000)
		n.clock.step(-10 * time.Minute)
		time.Sleep(5 * time.Second)
		if p := n.issue(1000); p.Worker == old.Worker {
			t.Errorf("still number %d", p.Worker)
		}
		if r := w.records.record(old.Worker); !r.Released || r.Bound <= millis(old) || r.Bound > millis(old)+10 {
			t.Errorf("the old number is left as %+v, issued until %d", r, millis(old))
		}
		if len(n.alarms.list()) > 0 || len(w.records.peers) != 1 {
			t.Errorf("alarms %v, announced %v", n.alarms.list(), w.records.peers)
		}
		n.clock.step(10 * time.Minute)
		time.Sleep(5 * time.Second)
		n.issue(1000)
	})
}

// TestStepBackKeepsTheNumber: where another number is of no use, or cannot be had.
func TestStepBackKeepsTheNumber(t *testing.T) {
	for _, tt := range []struct {
		name   string
		kind   worker.Kind
		change func(*worker.Config)
		down   bool
	}{
		{"fixed", worker.Fixed, func(*worker.Config) {}, false},
		{"the only number", worker.Leased, func(c *worker.Config) { c.Numbers.Hi = 1 }, false},
		{"the registry is down", worker.Leased, func(*worker.Config) {}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run(t, tt.kind, func(w *world) {
				n := w.node("a", tt.change, func(c *worker.Config) { c.Horizon = time.Hour }).up()
				old := n.issue(1000)
				w.records.breakOff(tt.down)
				n.clock.step(-5 * time.Minute)
				time.Sleep(10 * time.Second)
				n.refuses(leaf.ErrClock)
				if st := n.Status(); st.Number != old.Worker || st.State != worker.Stalled {
					t.Errorf("%+v, before number %d", st, old.Worker)
				}
				n.clock.step(5 * time.Minute)
				time.Sleep(4 * time.Second)
				if p := n.issue(1000); p.Worker != old.Worker {
					t.Errorf("number %d, before %d", p.Worker, old.Worker)
				}
			})
		})
	}
}

// TestStepBackAgainstThePeers: a number is kept while the peers say that the step back
// is wrong.
func TestStepBackAgainstThePeers(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		nodes := w.peers("a", "b")
		time.Sleep(4 * time.Second)
		b := nodes["b:8080"]
		old := b.issue(10)
		b.clock.step(-10 * time.Minute)
		time.Sleep(10 * time.Second)
		b.refuses(leaf.ErrClock)
		if st := b.Status(); st.Number != old.Worker || st.Losses != 0 {
			t.Errorf("%+v, before number %d", st, old.Worker)
		}
		b.clock.step(10 * time.Minute)
		time.Sleep(4 * time.Second)
		if p := b.issue(10); p.Worker != old.Worker {
			t.Errorf("number %d, before %d", p.Worker, old.Worker)
		}
	})
}

// TestStepBackWithoutAnAnswer: a number is kept while the registry does not tell which
// peers there are: one of them might object.
func TestStepBackWithoutAnAnswer(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a", func(c *worker.Config) { c.Clock.Ask = ask(map[string]*node{}, time.Millisecond) })
		registry := &peerless{Registry: worker.NewPool(w.records)}
		h, err := worker.New(registry, n.disk, n.cfg)
		if err != nil {
			t.Fatal(err)
		}
		n.Holder = h
		w.t.Cleanup(n.crash)
		if err := h.Start(w.t.Context()); err != nil {
			t.Fatal(err)
		}
		old := n.issue(10)
		registry.down.Store(true)
		n.clock.step(-10 * time.Minute)
		time.Sleep(10 * time.Second)
		n.refuses(leaf.ErrClock)
		if st := n.Status(); st.Number != old.Worker || st.Losses != 0 {
			t.Errorf("%+v, before number %d", st, old.Worker)
		}
		registry.down.Store(false)
		time.Sleep(10 * time.Second)
		if p := n.issue(10); p.Worker == old.Worker {
			t.Errorf("still number %d", p.Worker)
		}
	})
}

// peerless is a registry that does not tell who the peers are while it is down.
type peerless struct {
	worker.Registry

	down atomic.Bool
}

func (m *peerless) Peers(ctx context.Context) ([]worker.Peer, error) {
	if m.down.Load() {
		return nil, errors.New("no route to host")
	}
	return m.Registry.Peers(ctx)
}

// TestStepBackGivesTheNumberBack: KeepOnStop is for a stop. A number that lies ahead of the
// clock is released all the same.
func TestStepBackGivesTheNumberBack(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a", func(c *worker.Config) { c.KeepOnStop = true }).up()
		old := n.issue(10)
		n.clock.step(-10 * time.Minute)
		time.Sleep(5 * time.Second)
		n.issue(10)
		if r := w.records.record(old.Worker); !r.Released {
			t.Errorf("the old number is left as %+v", r)
		}
	})
}

// TestSecondsKeepTheNumber: IDs of a layout with seconds end up to a second ahead of the
// clock, also of one that is right and with a margin that is shorter.
func TestSecondsKeepTheNumber(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a", func(c *worker.Config) { c.Margin, c.Layout = 500*time.Millisecond, snowflake.Seconds() })
		if err := n.begin(); err != nil {
			t.Fatal(err)
		}
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			_, _ = n.Next(w.t.Context(), "k") // up to 1,000 a second
		}
		if st := n.Status(); st.Losses > 0 || st.State != worker.Serving {
			t.Errorf("a node with a right clock has %+v", st)
		}
	})
}

// TestNumberWithinReach: a node that waits for its only free number, which a wrong clock
// has put far ahead, takes another one as soon as that is free.
func TestNumberWithinReach(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		two := func(c *worker.Config) { c.Numbers.Hi = 2 }
		a, b := w.node("a", two).up(), w.node("b", two).up()
		a.issue(10)
		a.clock.step(-time.Hour)
		time.Sleep(time.Minute)
		a.refuses(leaf.ErrClock)
		b.issue(10)
		b.stop()
		time.Sleep(time.Minute)
		a.refuses(leaf.ErrClock) // that of b is as far ahead
		w.records.set(func(r *records) {
			for n, rec := range r.byNum {
				if rec.Address == "b:8080" {
					rec.Bound = a.clock.Now().UnixMilli()
					r.byNum[n] = rec
				}
			}
		})
		time.Sleep(time.Minute)
		a.issue(10)
	})
}

// TestNoJumpBackToARefusedClock: a node starts a year ahead, is refused and set right.
// When its clock jumps ahead again by nearly as much, that is a jump like any other.
func TestNoJumpBackToARefusedClock(t *testing.T) {
	for _, alone := range []bool{false, true} {
		for _, jump := range []time.Duration{year - 24*time.Hour, year} {
			run(t, worker.Leased, func(w *world) {
				nodes := w.peers("a", "b")
				time.Sleep(4 * time.Second)
				c := w.node("c", func(c *worker.Config) {
					c.Clock = worker.ClockCheck{Ask: ask(nodes, time.Millisecond), Self: c.Address}
				})
				c.clock.step(year)
				c.up()
				time.Sleep(10 * time.Second)
				c.refuses(leaf.ErrClock)
				c.clock.step(-year)
				time.Sleep(10 * time.Second)
				c.issue(10)
				limit := c.clock.Now().Add(5 * time.Minute).UnixMilli()
				if alone {
					nodes["a:8080"].stop()
					nodes["b:8080"].stop()
				}
				c.clock.step(jump)
				time.Sleep(time.Minute)
				c.refuses(leaf.ErrClock)
				for number := range int64(4) {
					if bound := w.records.record(number).Bound; bound > limit {
						t.Errorf("worker ID %d is burnt until %v", number, time.UnixMilli(bound).UTC())
					}
				}
			})
		}
	}
}

// TestNoJumpBackAfterAStart: the same for a node that nobody could refuse: it served a
// year ahead, and was set right.
func TestNoJumpBackAfterAStart(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a")
		n.clock.step(year)
		n.up()
		n.issue(10)
		n.clock.step(-year)
		time.Sleep(5 * time.Second)
		number := n.issue(10).Worker
		bound := n.Status().Bound
		n.clock.step(year - 24*time.Hour)
		time.Sleep(time.Minute)
		n.refuses(leaf.ErrClock)
		if r := w.records.record(number); r.Bound > bound+time.Hour.Milliseconds() {
			t.Errorf("T is at %v", time.UnixMilli(r.Bound).UTC())
		}
	})
}

// TestStalledIsNotServing: the state of a node that has a number and issues nothing is
// not "serving".
func TestStalledIsNotServing(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a", func(c *worker.Config) { c.Horizon = time.Minute }).up()
		w.records.breakOff(true)
		time.Sleep(2 * time.Minute)
		st := n.Status()
		if st.Ready || st.State != worker.Stalled || st.Reason != "no IDs are issued: the time bound is used up, because the registry or the disk does not answer" {
			t.Errorf("%+v", st)
		}
		w.records.breakOff(false)
		time.Sleep(5 * time.Second)
		if st := n.Status(); !st.Ready || st.State != worker.Serving || st.Reason != "" {
			t.Errorf("%+v", st)
		}
	})
}

// TestAnotherNumberBecomesFree: all numbers are in use, so a leased node waits for the T of
// the number that an operator took from it. When another number returns, the node takes that.
func TestAnotherNumberBecomesFree(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		two := func(c *worker.Config) { c.Numbers.Hi, c.Horizon = 2, 10*time.Minute }
		a, b := w.node("a", two).up(), w.node("b", two).up()
		a.issue(10)
		b.issue(10)
		if err := worker.NewPool(w.records).Free(w.t.Context(), a.claimed()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		before := w.records.writes()
		a.says(leaf.ErrNotReady, "may be used from")
		time.Sleep(time.Minute)
		a.says(leaf.ErrNotReady, "may be used from")
		if n := w.records.writes() - before; n > 45 {
			t.Errorf("%d writes in a minute of two nodes", n)
		}
		old, next := a.claimed(), b.claimed()
		b.stop()
		time.Sleep(20 * time.Second)
		if p := a.issue(5000); p.Worker != next {
			t.Errorf("issues with worker ID %d, want %d", p.Worker, next)
		}
		if r := w.records.record(old); !r.Released {
			t.Errorf("the other number is not released: %+v", r)
		}
	})
}

// TestAnotherNumberIsOfNoUse: a number returns while a leased node waits, but it belongs to
// another program. The node tries once and goes on waiting.
func TestAnotherNumberIsOfNoUse(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		two := func(c *worker.Config) { c.Numbers.Hi, c.Horizon = 2, 10*time.Minute }
		a, b := w.node("a", two), w.node("b", two).up()
		if err := a.start(worker.NewPool(javas{w.records, b.claimed()})); err != nil {
			t.Fatal(err)
		}
		a.issue(10)
		if err := worker.NewPool(w.records).Free(w.t.Context(), a.claimed()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		b.stop()
		time.Sleep(20 * time.Second)
		losses := a.Status().Losses
		time.Sleep(5 * time.Minute)
		a.says(leaf.ErrNotReady, "may be used from")
		if st := a.Status(); losses != 2 || st.Losses != losses {
			t.Errorf("%d losses, %d after five minutes, want 2", losses, st.Losses)
		}
		time.Sleep(5 * time.Minute)
		a.issue(10)
	})
}

// javas is a registry in which another program has given a number to another address.
type javas struct {
	*records

	number int64
}

func (j javas) Reserved(context.Context) ([]worker.Adoptable, error) {
	return []worker.Adoptable{{Number: j.number, Address: "java:8080"}}, nil
}
