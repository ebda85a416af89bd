package owner_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/owner"
	"github.com/leaf-idgen/leaf/worker"
)

const (
	lease = 2 * time.Second // the default
	quiet = lease + lease/10
	pause = lease / 4
)

const firstSlot = 1024 // the number of its record

func isSlot(r worker.Record) bool { return r.Number >= firstSlot }

func TestOneNode(t *testing.T) {
	run(t, func(c *cluster) {
		n := c.start("a")
		if owned := n.owned(); len(owned) > 0 {
			t.Errorf("slots without a record have an owner at once: %v", owned)
		}
		if took := c.settle(time.Minute); took < quiet {
			t.Errorf("slots without a record were taken after %v, want %v or more: what owned them may have been lost", took, quiet)
		}
		c.watch(3 * lease)
		if got := len(n.owned()); got != slots {
			t.Errorf("%d slots after some renewals, want %d", got, slots)
		}
	})
}

// A node that joins takes its share at once, with nobody waiting for a lease, and all nodes know the owners.
func TestShares(t *testing.T) {
	run(t, func(c *cluster) {
		a := c.start("a")
		c.settle(time.Minute)
		b := c.start("b")
		c.watch(2 * pause)
		c.settle(time.Millisecond)
		if len(a.owned()) == 0 || len(b.owned()) == 0 {
			t.Fatalf("a has %v, b has %v", a.owned(), b.owned())
		}
		c.watch(pause)
		for _, n := range c.nodes {
			for _, k := range n.owned() {
				for _, asked := range c.nodes {
					if got := asked.Routes()[k].Address; got != n.address {
						t.Errorf("%s says that %q owns slot %d, want %s", asked.address, got, k, n.address)
					}
				}
			}
		}
		_, err := a.Term(tags[b.owned()[0]])
		if elsewhere, ok := errors.AsType[*owner.ElsewhereError](err); !ok || !errors.Is(err, leaf.ErrNotReady) || elsewhere.Route.Address != "b" {
			t.Errorf("asked the wrong node: %v", err)
		}
	})
}

func TestTakeovers(t *testing.T) {
	for _, tt := range []struct {
		name   string
		happen func(a, b *node)
		limit  time.Duration // until every slot has an owner
		all    bool          // b has all of them then
	}{
		{"a crash", func(a, _ *node) { a.set(func(l *faults) { l.cut = true }) }, 3 * time.Second, true},
		{"a clean stop", func(a, _ *node) { _ = a.Close(a.c.t.Context()) }, pause, true},
		{"a clean stop, and b looks", func(a, b *node) {
			_ = a.Close(a.c.t.Context())
			_ = b.Look(b.c.t.Context())
		}, 0, true},
		{"a drain", func(a, _ *node) { a.weight.Store(0) }, 2 * pause, true},
		{"answers that are lost", func(a, _ *node) { a.set(func(l *faults) { l.deaf = true }) }, 3 * time.Second, true},
		{"a process that stands still", func(a, _ *node) { a.stand() }, 3 * time.Second, true},
		{"records of slots that vanish", func(a, _ *node) { a.c.registry.Forget() }, 2 * quiet, false},
		{"records of slots that vanish while a drains", func(a, _ *node) {
			a.weight.Store(0)
			for k := range slots {
				a.c.registry.DeleteClaim(firstSlot + int64(k))
			}
		}, 2 * quiet, true},
		{"a registry that is wiped", func(a, _ *node) { a.c.registry.Wipe() }, 2 * quiet, false},
		{"a namespace that is deleted", func(a, _ *node) { a.c.registry.Rename() }, pause, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run(t, func(c *cluster) {
				a, b := c.start("a"), c.start("b")
				c.settle(time.Minute)
				c.watch(pause)
				if len(a.owned()) == 0 {
					t.Fatal("a has nothing to lose")
				}
				tt.happen(a, b)
				if tt.all {
					c.until(tt.limit, "b has all slots", func() bool { return len(b.owned()) == slots })
				} else {
					c.watch(pause)
					c.settle(tt.limit)
				}
				c.watch(2 * lease)
				c.settle(time.Millisecond)
			})
		})
	}
}

// A node that was cut off, or stood still, comes back: it has its share again, in terms of its own.
func TestComesBack(t *testing.T) {
	for _, tt := range []struct {
		name        string
		leave, back func(a *node)
	}{
		{"from behind a cut", func(a *node) { a.set(func(l *faults) { l.cut = true }) }, func(a *node) { a.set(func(l *faults) { l.cut = false }) }},
		{"from a stop of the process", func(a *node) { a.stand() }, func(a *node) { a.goOn() }},
		{"from a stop just after a renewal", func(a *node) {
			a.set(func(l *faults) {
				l.done = func(r worker.Record) {
					if !isSlot(r) {
						a.stand()
					}
				}
			})
			a.c.until(lease, "a stands", func() bool { return a.gate.Load() != nil })
		}, func(a *node) {
			a.set(func(l *faults) { l.done = nil })
			a.goOn()
		}},
		{"from lost answers", func(a *node) { a.set(func(l *faults) { l.deaf = true }) }, func(a *node) { a.set(func(l *faults) { l.deaf = false }) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for away := pause / 2; away < 2*quiet; away += pause * 3 / 4 {
				run(t, func(c *cluster) {
					a, _ := c.start("a"), c.start("b")
					c.settle(time.Minute)
					c.watch(pause)
					owned := a.owned()
					before, _ := a.Term(tags[owned[0]])
					tt.leave(a)
					c.watch(away)
					ended := !before.Valid()
					tt.back(a)
					for end := time.Now().Add(2 * quiet); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
						if c.check(); ended && before.Valid() {
							t.Fatalf("away for %v: a term that had ended is valid again", away)
						}
					}
					c.settle(time.Millisecond)
					if !slices.Equal(a.owned(), owned) {
						t.Errorf("away for %v: a has %v again, want %v", away, a.owned(), owned)
					}
				})
			}
		})
	}
}

// The node stands still just after a write by which it took a slot. Meanwhile its session is ended, so
// the slot is another node's as soon as that looks.
func TestTakesWithASessionThatIsOver(t *testing.T) {
	run(t, func(c *cluster) {
		a, b := c.start("a"), c.start("b")
		c.settle(time.Minute)
		c.watch(pause)
		share := a.owned()
		a.weight.Store(0)
		c.watch(3 * pause)
		a.weight.Store(100) // b gives a's share back
		a.set(func(l *faults) {
			l.listsAfter = 2 * lease / 10 // so that a takes it a while after its renewal
			l.done = func(r worker.Record) {
				if isSlot(r) {
					a.stand()
				}
			}
		})
		b.see(2 * quiet)
		a.set(func(l *faults) { l.done, l.listsAfter = nil, 0 })
		a.goOn()
		c.watch(2 * quiet)
		c.settle(time.Millisecond)
		if !slices.Equal(a.owned(), share) {
			t.Errorf("a has %v, want %v", a.owned(), share)
		}
	})
}

// The rounds of a node are so slow that each begins right after the one before, and a caller looks in one of them. The next one,
// which it waits for, takes all that is the node's.
func TestLookInSlowRounds(t *testing.T) {
	run(t, func(c *cluster) {
		a, b := c.start("a"), c.start("b")
		c.settle(time.Minute)
		b.set(func(l *faults) { l.listsAfter = pause + 100*time.Millisecond })
		c.watch(lease)
		_ = a.Close(c.t.Context())
		if err := b.Look(c.t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(b.owned()) != slots {
			t.Errorf("b has %v after the round that it looked in", b.owned())
		}
	})
}

// A registry that is set back names owners of before. Nobody believes it at once.
func TestRegistryGoesBack(t *testing.T) {
	run(t, func(c *cluster) {
		a := c.start("a")
		c.settle(time.Minute)
		restore := c.registry.Backup()
		b := c.start("b")
		c.watch(3 * pause)
		if len(b.owned()) == 0 {
			t.Fatal("b has nothing")
		}
		restore()
		_ = a.Look(c.t.Context())
		c.watch(3 * quiet)
		c.settle(time.Millisecond)
	})
}

// The answers of the registry take longer than a term has left: the lease counts from the request.
func TestSlowRegistry(t *testing.T) {
	run(t, func(c *cluster) {
		a, b := c.start("a"), c.start("b")
		c.settle(time.Minute)
		a.set(func(l *faults) { l.answersAfter = pause - 10*time.Millisecond })
		c.watch(quiet)
		a.renewOnce()
		b.see(3 * quiet)
		if len(b.owned()) != slots {
			t.Errorf("b has %v", b.owned())
		}
	})
}

// The clock of a node may be slow by what the margin is for: its terms last longer, and no other node takes
// its slots before.
func TestSlowClock(t *testing.T) {
	run(t, func(c *cluster) {
		a := c.start("a", func(cfg *owner.Config) {
			cfg.Elapsed = func() time.Duration { return time.Since(epoch) * 95 / 100 }
		})
		b := c.start("b")
		c.settle(time.Minute)
		a.renewOnce()
		b.see(3 * quiet)
		if len(b.owned()) != slots {
			t.Errorf("b has %v", b.owned())
		}
	})
}

// While a machine is suspended its monotonic clock stands still, and its wall clock may be set back.
func TestSuspended(t *testing.T) {
	run(t, func(c *cluster) {
		var suspended atomic.Int64
		a := c.start("a", func(cfg *owner.Config) {
			cfg.Elapsed = func() time.Duration { return time.Since(epoch) + time.Duration(suspended.Load()) }
		})
		c.settle(time.Minute)
		suspended.Add(int64(lease))
		if owned := a.owned(); len(owned) > 0 {
			t.Errorf("a woke up and serves %v", owned)
		}
		c.settle(2 * pause)
	})
}

// The session of a node is ended by hand. The node stops at its next look, not at the end of the lease.
func TestSessionEnded(t *testing.T) {
	run(t, func(c *cluster) {
		a, _ := c.start("a"), c.start("b")
		c.settle(time.Minute)
		c.watch(pause)
		before, err := a.Term(tags[a.owned()[0]])
		if err != nil {
			t.Fatal(err)
		}
		records, err := a.Records.List(c.t.Context())
		if err != nil {
			t.Fatal(err)
		}
		a.set(func(l *faults) { l.onPut = func(worker.Record) error { return errCut } })
		for _, r := range records {
			if !isSlot(r) && r.Address == "a" {
				c.registry.DeleteClaim(r.Number)
			}
		}
		time.Sleep(pause + pause/2)
		if before.Valid() {
			t.Error("its terms go on")
		}
		a.set(func(l *faults) { l.onPut = nil })
		c.watch(2 * quiet)
		c.settle(time.Millisecond)
	})
}

// After a wipe a new node counts epochs from 1. Its slots are its own all the same, also for a node that
// remembers higher ones, and while it cannot give away what is that node's share.
func TestEpochsBeginAnew(t *testing.T) {
	run(t, func(c *cluster) {
		a := c.start("a")
		c.settle(time.Minute)
		c.watch(pause)
		a.set(func(l *faults) { l.cut = true })
		c.registry.Wipe()
		b := c.start("b")
		c.settle(time.Minute)
		b.set(func(l *faults) {
			l.onPut = func(r worker.Record) error {
				if isSlot(r) {
					return errCut
				}
				return nil
			}
		})
		a.set(func(l *faults) { l.cut = false })
		c.watch(3 * quiet)
		b.set(func(l *faults) { l.onPut = nil })
		c.watch(3 * quiet)
		c.settle(time.Millisecond)
		if len(a.owned()) == 0 {
			t.Error("a gets nothing")
		}
	})
}

// The record of a slot is deleted while its owner, with a longer lease than the other node, cannot look.
func TestLongerLease(t *testing.T) {
	run(t, func(c *cluster) {
		a := c.start("a", func(cfg *owner.Config) { cfg.Lease = 10 * lease })
		b := c.start("b")
		c.settle(time.Minute)
		c.watch(10 * quiet)
		if len(a.owned()) == 0 {
			t.Fatal("a has nothing")
		}
		a.set(func(l *faults) { l.cut = true })
		c.registry.Forget()
		c.until(20*quiet, "b has all slots", func() bool { return len(b.owned()) == slots })
	})
}

// A registry that hangs keeps no stop from ending the terms.
func TestCloseBesideAHungRegistry(t *testing.T) {
	run(t, func(c *cluster) {
		a := c.start("a")
		c.settle(time.Minute)
		hangs := make(chan struct{})
		a.set(func(l *faults) {
			l.onPut = func(worker.Record) error {
				<-hangs
				return errCut
			}
		})
		time.Sleep(2 * pause)
		before, err := a.Term(tags[0])
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(c.t.Context(), time.Millisecond)
		defer cancel()
		if err := a.Close(ctx); err == nil {
			t.Error("Close gave the slots away through a registry that hangs")
		}
		if owned := a.owned(); len(owned) > 0 || before.Valid() {
			t.Errorf("after Close a serves %v, and the term that it had is valid: %t", owned, before.Valid())
		}
		close(hangs)
	})
}

func TestAnotherCluster(t *testing.T) {
	run(t, func(c *cluster) {
		c.start("a")
		for name, change := range map[string]func(*owner.Config){
			"slots": func(cfg *owner.Config) { cfg.Slots = 16 },
			"name":  func(cfg *owner.Config) { cfg.Namespace = "other" },
		} {
			cfg := owner.Config{Address: "b", Namespace: "test", Slots: slots, Elapsed: func() time.Duration { return time.Since(epoch) }}
			change(&cfg)
			s, err := owner.New(c.registry.Open(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Start(c.t.Context()); !errors.Is(err, worker.ErrForeign) {
				t.Errorf("%s: %v, want ErrForeign", name, err)
			}
			if err := s.Close(c.t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

func TestConfig(t *testing.T) {
	good := owner.Config{Address: "a", Namespace: "test", Elapsed: func() time.Duration { return 0 }}
	for field, spoil := range map[string]func(c *owner.Config){
		"address":   func(c *owner.Config) { c.Address = "" },
		"namespace": func(c *owner.Config) { c.Namespace = "" },
		"slots":     func(c *owner.Config) { c.Slots = owner.MaxSlots + 1 },
		"lease":     func(c *owner.Config) { c.Lease = owner.MinLease - 1 },
		"elapsed":   func(c *owner.Config) { c.Elapsed = nil },
	} {
		cfg := good
		spoil(&cfg)
		if _, err := owner.New(nil, cfg); !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v, want ErrBadRequest that names it", field, err)
		}
	}
	if _, err := owner.New(nil, good); err != nil {
		t.Error(err)
	}
}
