package worker_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

// wrong is a registry that answers something else than it was asked.
type wrong struct {
	worker.Registry

	info   worker.Info
	answer func(*worker.Record)
	mute   error // of announcements
}

func (g *wrong) Info() worker.Info { return g.info }

func (g *wrong) Claim(ctx context.Context, req worker.Request) (worker.Record, error) {
	r, err := g.Registry.Claim(ctx, req)
	if g.answer != nil {
		g.answer(&r)
	}
	return r, err
}

func (g *wrong) Announce(context.Context, worker.Peer) error { return g.mute }

// start runs a node's process on another registry.
func (n *node) start(reg worker.Registry) error {
	n.w.t.Helper()
	h, err := worker.New(reg, n.disk, n.cfg)
	if err != nil {
		n.w.t.Fatal(err)
	}
	n.Holder = h
	n.w.t.Cleanup(func() { n.crash() })
	return h.Start(n.w.t.Context())
}

// TestRegistryAnswersSomethingElse: nothing is issued with what nobody asked for.
func TestRegistryAnswersSomethingElse(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(*worker.Record)
	}{
		{"another nonce", func(r *worker.Record) { r.Nonce = "other" }},
		{"a number outside the range", func(r *worker.Record) { r.Number = 4 }},
		{"a T below the floor", func(r *worker.Record) { r.Floor = r.Bound + 1 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run(t, worker.Leased, func(w *world) {
				a := w.node("a")
				if err := a.start(&wrong{Registry: worker.NewPool(w.records), info: w.records.Info(), answer: tt.answer}); !errors.Is(err, worker.ErrForeign) {
					t.Errorf("start: %v", err)
				}
				a.refuses(leaf.ErrNotReady)
			})
		})
	}
}

// TestWaitsForTheLastOwner: a fixed number whose last owner was killed, and whose file is gone,
// waits for T. The text says which number waits, for which process and until when, and does not
// take the registry for a new one.
func TestWaitsForTheLastOwner(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		one := func(c *worker.Config) { c.Numbers.Hi = 1 }
		a := w.node("a", one).up()
		time.Sleep(4 * time.Second)
		bound := w.records.record(0).Bound
		a.crash()
		b := w.node("b", one)
		late := func(r *worker.Record) { r.Floor, r.Bound, r.After = bound, bound, "a:8080" }
		w.records.set(func(r *records) {
			freed := r.byNum[0]
			freed.Released, freed.Bound = true, 0
			r.byNum[0] = freed
		})
		if err := b.start(&wrong{Registry: worker.NewPool(w.records), info: w.records.Info(), answer: late}); err != nil {
			t.Fatal(err)
		}
		b.says(leaf.ErrNotReady, "worker ID 0 may be used from 2024-01-01T00:10:03Z on, in 9m59s, because its last owner, a process with the address a:8080, may issue with it until then")
		if reason := b.Status().Reason; strings.Contains(reason, "registry") || strings.Contains(reason, "init") {
			t.Errorf("reason %q", reason)
		}
	})
}

// TestAnnouncementFails: a node that its peers cannot see serves.
func TestAnnouncementFails(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		a := w.node("a")
		if err := a.start(&wrong{Registry: worker.NewPool(w.records), info: w.records.Info(), mute: errors.New("no room")}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		a.issue(10)
	})
}

// TestTroubleIsLoggedOnce: the node tries again each second, for as long as a disk is full or a right is missing, and its
// log may be on that disk.
func TestTroubleIsLoggedOnce(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		n := w.node("a")
		var log lines
		n.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		if err := n.start(&wrong{Registry: worker.NewPool(w.records), info: w.records.Info(), mute: errors.New("no such table")}); err != nil {
			t.Fatal(err)
		}
		n.disk.set(func(d *disk) { d.err = errors.New("no space left on device") })
		time.Sleep(time.Minute)
		for _, text := range []string{"the time bound is not extended", "not announced"} {
			if got := strings.Count(log.String(), text); got != 1 {
				t.Errorf("%d lines of %q in a minute, want 1", got, text)
			}
		}
	})
}

// TestAnnouncementIsRepeated: peers see a node again that the registry forgot.
func TestAnnouncementIsRepeated(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		a := w.node("a").up()
		w.records.set(func(r *records) { clear(r.peers) })
		time.Sleep(4 * time.Second)
		if all, err := w.records.Peers(w.t.Context()); err != nil || len(all) != 1 || all[0].Number != a.Status().Number {
			t.Errorf("Peers = %+v, %v", all, err)
		}
	})
}

// TestFileOfAnotherRegistry: the T of one registry says nothing about another one.
func TestFileOfAnotherRegistry(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		a := w.node("a").up()
		a.issue(10)
		a.crash()
		w.records.breakOff(true)
		info := w.records.Info()
		info.Name = "other"
		if err := a.start(&wrong{Registry: worker.NewPool(w.records), info: info}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		a.refuses(leaf.ErrNotReady)
	})
}

// TestRestartAfterRollback: the registry was set back, and its T lies below what was
// issued. The file knows better.
func TestRestartAfterRollback(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		a := w.node("a", func(c *worker.Config) { c.Numbers.Hi = 1 }).up()
		first := w.records.record(0)
		first.Bound = a.clock.Now().UnixMilli()
		time.Sleep(10 * time.Second)
		last := a.issue(5000)
		a.crash()
		w.records.set(func(r *records) { r.byNum[0] = first })
		a.clock.step(-5 * time.Second)
		if err := a.begin(); err != nil {
			t.Fatal(err)
		}
		for range 200 {
			time.Sleep(100 * time.Millisecond)
			if id, err := a.Next(w.t.Context(), "k"); err == nil {
				if p := w.take(id, "a"); millis(p) <= millis(last) {
					t.Fatalf("issued at %d, and before at %d", millis(p), millis(last))
				}
			}
		}
		a.issue(10)
	})
}

// TestRenewAfterRelease: a number that was released is not taken again by a renewal.
func TestRenewAfterRelease(t *testing.T) {
	r := newRecords(worker.Leased)
	pool := worker.NewPool(r)
	own, err := pool.Claim(t.Context(), worker.Request{Address: "a", Nonce: "a", Numbers: leaf.Range{Lo: 0, Hi: 1}, Now: 1000, Bound: 61_000})
	if err != nil {
		t.Fatal(err)
	}
	if err := pool.Release(t.Context(), own, 2000); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Renew(t.Context(), own, 64_000); !errors.Is(err, worker.ErrLost) {
		t.Errorf("Renew: %v", err)
	}
	if kept := r.record(0); !kept.Released || kept.Bound != 2000 {
		t.Errorf("record %+v", kept)
	}
}

// TestHorizonOutlastsAFailover: by default a node issues for longer than the failover of a
// database takes.
func TestHorizonOutlastsAFailover(t *testing.T) {
	if got := (worker.Config{}).WithDefaults().Horizon; got < 10*time.Minute {
		t.Errorf("the default is %v", got)
	}
}

func TestConfigIsValidated(t *testing.T) {
	for _, tt := range []struct {
		field  string
		kind   worker.Kind
		change func(*worker.Config)
	}{
		{"layout", worker.Leased, func(c *worker.Config) { c.Layout.TimeBits = 60 }},
		{"namespace", worker.Leased, func(c *worker.Config) { c.Namespace = "" }},
		{"namespace", worker.Leased, func(c *worker.Config) { c.Namespace = strings.Repeat("n", 65) }},
		{"address", worker.Leased, func(c *worker.Config) { c.Address = "10.0.0.1" }},
		{"worker-range", worker.Leased, func(c *worker.Config) { c.Numbers = leaf.Range{} }},
		{"worker-range", worker.Leased, func(c *worker.Config) { c.Numbers = leaf.Range{Lo: -1, Hi: 3} }},
		{"worker-range", worker.Leased, func(c *worker.Config) { c.Numbers = leaf.Range{Lo: 0, Hi: 1025} }},
		{"datacenter", worker.Leased, func(c *worker.Config) { c.Datacenter = new(int64(1)) }},
		{"datacenter", worker.Leased, func(c *worker.Config) { c.Datacenter = new(int64(-1)) }},
		{"renew-interval", worker.Fixed, func(c *worker.Config) { c.Renew = time.Millisecond }},
		{"ahead", worker.Fixed, func(c *worker.Config) { c.Ahead = 2 * time.Minute }},
		{"horizon", worker.Fixed, func(c *worker.Config) { c.Horizon = 8 * time.Second }},
		{"horizon", worker.Leased, func(c *worker.Config) { c.Horizon = 25 * time.Hour }},
		{"lease", worker.Leased, func(c *worker.Config) { c.Lease = time.Millisecond }},
		{"margin", worker.Leased, func(c *worker.Config) { c.Margin = -time.Second }},
		{"timeout", worker.Leased, func(c *worker.Config) { c.Timeout = time.Hour }},
		{"clock-jump", worker.Leased, func(c *worker.Config) { c.Jump = time.Second }},
		{"clock-threshold", worker.Leased, func(c *worker.Config) { c.Clock.Threshold = -1 }},
		{"clock-timeout", worker.Leased, func(c *worker.Config) { c.Clock.Timeout = time.Hour }},
		{"clock-interval", worker.Leased, func(c *worker.Config) { c.Clock.Interval = time.Nanosecond }},
	} {
		c := worker.Config{Layout: snowflake.Leaf(), Namespace: "test", Address: "10.0.0.1:80", Numbers: leaf.Range{Lo: 0, Hi: 1024}}
		if _, err := worker.New(worker.NewPool(newRecords(tt.kind)), nil, c); err != nil {
			t.Fatal(err)
		}
		tt.change(&c)
		if _, err := worker.New(worker.NewPool(newRecords(tt.kind)), nil, c); !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), tt.field) {
			t.Errorf("%s: %v", tt.field, err)
		}
	}
}

// TestWithoutADataDirectory: with the system's clock, as a program has it.
func TestWithoutADataDirectory(t *testing.T) {
	c := worker.Config{Layout: snowflake.Leaf(), Namespace: "test", Address: "10.0.0.1:80", Numbers: leaf.Range{Lo: 7, Hi: 8}, Fresh: true}
	h, err := worker.New(worker.NewPool(newRecords(worker.Leased)), nil, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ids, err := h.NextN(t.Context(), "", 10_000)
	var n, last int64
	for _, r := range ids {
		if r.Lo <= last {
			t.Errorf("%d after %d", r.Lo, last)
		}
		n, last = n+r.Len(), r.Hi-1
	}
	if err != nil || n != 10_000 {
		t.Errorf("NextN gave %d IDs, %v", n, err)
	}
	for _, n := range []int{0, -1, leaf.MaxBatch + 1} {
		if _, err := h.NextN(t.Context(), "", n); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("NextN(%d): %v", n, err)
		}
	}
	if err := h.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := h.NextN(t.Context(), "", 1); !errors.Is(err, leaf.ErrNotReady) {
		t.Errorf("closed: %v", err)
	}
}

func TestStaticRegistry(t *testing.T) {
	s := worker.NewStatic(5)
	c := worker.Config{Layout: snowflake.Leaf(), Namespace: "test", Address: "10.0.0.1:80", Numbers: leaf.Range{Lo: 0, Hi: 1024}}
	if _, err := worker.New(s, nil, c); !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), "disk=") {
		t.Errorf("without a disk, and so without a memory: %v, want a bad request that names disk", err)
	}
	pair := c
	pair.Standby = true
	if _, err := worker.New(s, nil, pair); !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), "standby=") {
		t.Errorf("one of a pair, which would not wait: %v, want a bad request that names standby", err)
	}
	if err := errors.Join(s.Init(t.Context(), worker.Namespace{}), s.Withdraw(t.Context(), worker.Peer{})); err != nil {
		t.Error(err)
	}
	if all, err := s.List(t.Context()); err != nil || len(all) != 1 || all[0].Number != 5 {
		t.Errorf("List = %+v, %v", all, err)
	}
	if all, err := s.Peers(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("Peers = %+v, %v", all, err)
	}
	if err := s.Free(t.Context(), 5); !errors.Is(err, worker.ErrNotFound) {
		t.Errorf("Free: %v", err)
	}
}

// TestDatacentreIsIdentity: a registry, and a file, belong to one datacentre.
func TestDatacentreIsIdentity(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		dc := func(number int64) func(*worker.Config) {
			return func(c *worker.Config) { c.Layout, c.Datacenter = snowflake.DC(), &number }
		}
		w.node("a", dc(0)).up()
		if err := w.node("b", dc(1)).begin(); !errors.Is(err, worker.ErrForeign) || !strings.Contains(err.Error(), "datacenter=0") {
			t.Errorf("another datacentre at the same registry: %v", err)
		}
		if err := w.node("c", dc(0)).begin(); err != nil {
			t.Error(err)
		}
	})
}

// TestStopAfterRollback: the registry was set back, and a node that goes on with the T of its file
// stops before it has renewed. The number that it leaves may not be used from below what was issued.
func TestStopAfterRollback(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		a := w.node("a", func(c *worker.Config) {
			c.Numbers.Hi, c.Renew, c.Ahead, c.Horizon = 1, 10*time.Second, 9*time.Second, 2*time.Minute
		}).up()
		time.Sleep(65 * time.Second)
		a.issue(100)
		a.crash()
		w.records.set(func(r *records) {
			back := r.byNum[0]
			back.Bound, back.Floor = a.clock.Now().Add(6*time.Second).UnixMilli(), a.clock.Now().Add(-time.Minute).UnixMilli()
			r.byNum[0], r.lose = back, 1 // the node does not hear that it has the number
		})
		if err := a.begin(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15 * time.Second)
		last := a.issue(100)
		a.stop()
		if r := w.records.record(0); r.Bound <= millis(last) {
			t.Errorf("T is %d, and the node issued at %d", r.Bound, millis(last))
		}
	})
}

// TestDatacentreIsNamed: programs in two datacentres, each with a registry of its own, which gives the same numbers, do not both
// issue with the datacentre 0.
func TestDatacentreIsNamed(t *testing.T) {
	c := worker.Config{Layout: snowflake.DC(), Namespace: "test", Address: "10.0.0.1:80", Numbers: leaf.Range{Lo: 7, Hi: 8}, Fresh: true}
	if _, err := worker.New(worker.NewPool(newRecords(worker.Leased)), nil, c); !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), "another one in each datacentre") {
		t.Fatalf("a layout with a datacentre, and none in the configuration: %v", err)
	}
	c.Datacenter = new(int64(3))
	h, err := worker.New(worker.NewPool(newRecords(worker.Leased)), nil, c)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(t.Context())
	*c.Datacenter = 4 // the caller's own, for another Holder
	if err := h.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	id, err := h.Next(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if p, err := c.Layout.Decode(id); err != nil || p.Datacenter != 3 || p.Worker != 7 {
		t.Errorf("ID of %+v, %v; want datacentre 3, worker 7", p, err)
	}
}
