package owner_test

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/internal/owner"
	"github.com/leaf-idgen/leaf/worker"
)

// A node shows the owner of a slot that it is a node, and nobody else can: the secret ends with the
// owner's session.
func TestAdmits(t *testing.T) {
	run(t, func(c *cluster) {
		a, b := c.start("a"), c.start("b")
		c.settle(time.Minute)
		c.watch(2 * pause)
		secret := b.Routes()[a.owned()[0]].Secret
		if !a.Admits(secret) || b.Admits(secret) || a.Admits("") || a.Admits(secret+"x") || secret == "" {
			t.Errorf("secret %q: a admits it: %v, b admits it: %v", secret, a.Admits(secret), b.Admits(secret))
		}
		a.set(func(l *faults) { l.cut = true })
		c.watch(2 * quiet)
		if a.Admits(secret) {
			t.Error("the secret outlives the session")
		}
		a.set(func(l *faults) { l.cut = false })
		c.watch(2 * pause)
		if a.Admits(secret) {
			t.Error("the secret of a session is that of the next one")
		}
		if a.Owned() == 0 || a.Owned() != len(a.owned()) {
			t.Errorf("owns %d, want %d", a.Owned(), len(a.owned()))
		}
	})
}

// alarms remembers what is active.
type alarms struct {
	mu     sync.Mutex
	active map[string]leaf.Alarm
	total  int // that began
}

func (a *alarms) Raise(alarm leaf.Alarm) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.active[alarm.Code+" "+alarm.Subject] = alarm
	a.total++
}

func (a *alarms) Clear(code, subject string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.active, code+" "+subject)
}

// text returns the text of the registry's alarm about a subject, "" if there is none.
func (a *alarms) text(subject string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.active[leaf.AlarmRegistry+" "+subject].Text
}

func (a *alarms) raised(subject string) bool { return a.has(leaf.AlarmRegistry + " " + subject) }

func (a *alarms) has(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, found := a.active[name]
	return found
}

// Two nodes begin at the same moment, and want the same number for their session. Nobody is woken.
func TestJoinsBesideAnother(t *testing.T) {
	run(t, func(c *cluster) {
		al := &alarms{active: map[string]leaf.Alarm{}}
		var asked atomic.Int64
		a := c.start("a", func(cfg *owner.Config) {
			cfg.Alarms = al
			cfg.Elapsed = func() time.Duration {
				if asked.Add(1) == 2 { // it has read the registry, and is about to write its session
					c.start("b")
				}
				return time.Since(epoch)
			}
		})
		c.settle(time.Minute)
		c.watch(2 * pause)
		if al.total > 0 || len(a.owned()) == 0 {
			t.Errorf("%d alarms; a owns %v", al.total, a.owned())
		}
	})
}

// The alarm begins when the terms have run out, not with the first error, and ends with the first answer.
func TestAlarm(t *testing.T) {
	run(t, func(c *cluster) {
		al := &alarms{active: map[string]leaf.Alarm{}}
		a := c.start("a", func(cfg *owner.Config) { cfg.Alarms = al })
		c.settle(time.Minute)
		a.set(func(l *faults) { l.cut = true })
		c.watch(lease - 2*pause)
		if al.raised("slots") {
			t.Error("the alarm is raised although terms are valid")
		}
		c.watch(4 * pause)
		if !al.raised("slots") || len(a.owned()) > 0 {
			t.Errorf("alarms %v, a owns %v", al.active, a.owned())
		}
		a.set(func(l *faults) { l.cut = false })
		c.watch(2 * pause)
		if al.raised("slots") {
			t.Error("the alarm outlives its cause")
		}
	})
}

// A node has slots in each of its databases. While one of them does not answer, its alarm stays, whatever the others say.
func TestAlarmsOfTwoDatabases(t *testing.T) {
	run(t, func(c *cluster) {
		al := &alarms{active: map[string]leaf.Alarm{}}
		in := func(database string) func(*owner.Config) {
			return func(cfg *owner.Config) { cfg.Alarms, cfg.Database = al, database }
		}
		a := c.start("a", in("east"))
		other := &cluster{t: c.t, registry: memory.NewRegistry()}
		other.start("a", in("west"))
		defer func() { _ = other.nodes[0].Close(c.t.Context()) }()
		c.settle(time.Minute)
		a.set(func(l *faults) { l.cut = true })
		c.until(2*lease, "the alarm begins", func() bool { return al.raised("slots of east") })
		for range 10 {
			if c.watch(pause / 5); !al.raised("slots of east") {
				t.Fatal("the alarm ends although its cause is there")
			}
		}
	})
}

// A caller waits for the owner of its slot, and not until all other slots have one.
func TestFind(t *testing.T) {
	const write = 50 * time.Millisecond
	for name, before := range map[string]func(b *node){
		"at rest": func(*node) {},
		"while a round takes the others": func(b *node) {
			go func() { _ = b.Look(b.c.t.Context()) }()
			time.Sleep(write / 2)
		},
	} {
		t.Run(name, func(t *testing.T) {
			run(t, func(c *cluster) {
				a, b := c.start("a"), c.start("b")
				c.settle(time.Minute)
				c.watch(2 * pause)
				b.set(func(l *faults) { l.answersAfter = write })
				if err := a.Close(c.t.Context()); err != nil {
					t.Fatal(err)
				}
				moved := notOwnedBy(b)
				if len(moved) < 4 {
					t.Fatalf("only %v move", moved)
				}
				last := moved[len(moved)-1]
				before(b)
				began := time.Now()
				if err := b.Find(c.t.Context(), tags[last]); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took > 2*write || !slices.Contains(b.owned(), last) {
					t.Errorf("after %v b owns %v, want %d first", took, b.owned(), last)
				}
				c.settle(pause)
				if err := b.Close(c.t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := b.Find(c.t.Context(), tags[0]); !errors.Is(err, leaf.ErrNotReady) {
					t.Errorf("after Close: %v", err)
				}
			})
		})
	}
}

// However often callers ask, the session is written as often as it must be; and at once when the weight changes.
func TestSessionIsWrittenSeldom(t *testing.T) {
	run(t, func(c *cluster) {
		a, b := c.start("a"), c.start("b")
		c.settle(time.Minute)
		c.watch(2 * pause)
		writes := 0
		a.set(func(l *faults) {
			l.done = func(r worker.Record) {
				if !isSlot(r) {
					writes++
				}
			}
		})
		for range 20 {
			if err := a.Look(c.t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if writes > 1 {
			t.Errorf("20 looks in a moment wrote the session %d times", writes)
		}
		a.weight.Store(0)
		if err := a.Look(c.t.Context()); err != nil || len(a.owned()) > 0 {
			t.Errorf("%v; with the weight 0 it owns %v after a look", err, a.owned())
		}
		if err := b.Look(c.t.Context()); err != nil || len(b.owned()) != slots {
			t.Errorf("%v; the other node owns %v", err, b.owned())
		}
	})
}

// A node behind a proxy of its own machine may have an address that leads each other machine to itself. It owns slots
// among its like only.
func TestAddressOfOneMachine(t *testing.T) {
	for _, address := range []string{"127.0.0.1:9090", "[::1]:9090", "localhost:9090", "[::]:9090", "0.0.0.0:9090"} {
		t.Run(address, func(t *testing.T) {
			run(t, func(c *cluster) {
				a := c.start(address)
				if c.settle(time.Minute); len(a.owned()) != slots {
					t.Errorf("alone it owns %v", a.owned())
				}
				b := c.start("10.0.0.2:9090")
				c.until(time.Minute, "the node that others reach has all slots", func() bool { return len(b.owned()) == slots })
				b.weight.Store(0)
				c.until(time.Minute, "with the weight 0 it has none", func() bool { return len(a.owned()) == slots })
			})
		})
	}
}

// Two nodes with one address: calls for the tags of one of them fail where they reach the other one. Both say so. A node
// that starts again with its address after a crash does not.
func TestTwoNodesWithOneAddress(t *testing.T) {
	run(t, func(c *cluster) {
		al := &alarms{active: map[string]leaf.Alarm{}}
		told := func(cfg *owner.Config) { cfg.Alarms = al }
		a := c.start("a")
		c.settle(time.Minute)
		a.set(func(l *faults) { l.cut = true })
		b := c.start("a", told)
		c.until(time.Minute, "it has all slots after the crash", func() bool { return len(b.owned()) == slots })
		if c.watch(5 * lease); al.total > 0 {
			t.Errorf("after a crash: %v", al.active)
		}
		twin := c.start("a")
		c.until(5*lease, "the alarm begins", func() bool { return al.has(leaf.AlarmConfiguration + " node.advertise") })
		if err := twin.Close(c.t.Context()); err != nil {
			t.Fatal(err)
		}
		c.until(2*pause, "the alarm ends", func() bool { return !al.has(leaf.AlarmConfiguration + " node.advertise") })
	})
}

func notOwnedBy(n *node) (others []int) {
	for k := range tags {
		if !slices.Contains(n.owned(), k) {
			others = append(others, k)
		}
	}
	return others
}
