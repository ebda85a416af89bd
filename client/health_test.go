package client_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
)

func stateOfA(t *testing.T, c *client.Client) client.NodeStats {
	t.Helper()
	for _, n := range c.Stats().Nodes {
		if n.ID == "a" {
			return n
		}
	}
	t.Fatal("no node a")
	return client.NodeStats{}
}

// TestNodeFails: callers notice nothing but a delay, the node leaves the choice, and
// returns after it works again.
func TestNodeFails(t *testing.T) {
	for _, c := range []struct {
		name   string
		fail   func(*fake)
		repair func(*fake)
		state  client.State
		within time.Duration // until it is out of the choice
		worst  time.Duration // of a call meanwhile
	}{
		{
			"killed", func(f *fake) { f.down = true }, func(f *fake) { f.down = false },
			client.StateEjected, 100 * time.Millisecond, 20 * time.Millisecond,
		},
		{
			"stopped", func(f *fake) { f.thawed = make(chan struct{}) }, func(f *fake) { close(f.thawed) },
			client.StateEjected, 1200 * time.Millisecond, 150 * time.Millisecond,
		},
		{
			"answers health checks only", func(f *fake) { f.mute = true }, func(f *fake) { f.mute = false },
			client.StateEjected, 2 * time.Second, 150 * time.Millisecond,
		},
		{
			"drains", func(f *fake) { f.draining = true }, func(f *fake) { f.draining = false },
			client.StateDraining, 2 * time.Second, 0,
		},
	} {
		for _, zones := range []struct{ a, b string }{{"x", "x"}, {"x", "y"}} {
			t.Run(c.name+" in "+zones.a+zones.b, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					cl := newCluster(node("a", zones.a, 100), node("b", zones.b, 100))
					a := cl.nodes["a"]
					leafClient := cl.client(t, client.WithZone("x"))
					synctest.Wait()
					calls(t, leafClient, 50)
					a.set(c.fail)

					var worst time.Duration
					call := func() {
						start := time.Now()
						calls(t, leafClient, 1)
						worst = max(worst, time.Since(start))
						time.Sleep(5 * time.Millisecond)
					}
					start := time.Now()
					for stateOfA(t, leafClient).State != c.state {
						call()
						if time.Since(start) > c.within+time.Second {
							t.Fatalf("a is %v after %v", stateOfA(t, leafClient).State, time.Since(start))
						}
					}
					if took := time.Since(start); took > c.within {
						t.Errorf("a was %v after %v, want %v", c.state, took, c.within)
					}
					for range 1000 {
						call()
					}
					if worst > c.worst {
						t.Errorf("a call took %v, want at most %v", worst, c.worst)
					}

					a.set(c.repair)
					start = time.Now()
					for stateOfA(t, leafClient).State != client.StateUsable {
						call()
						if time.Since(start) > 6*time.Second {
							t.Fatalf("a is %v", stateOfA(t, leafClient).State)
						}
					}
					time.Sleep(15 * time.Second)
					if got := cl.shares(t, leafClient, 200)["a"]; got < 60 {
						t.Errorf("a returned and got %d of 200", got)
					}
				})
			})
		}
	}
}

// TestEjectionsGrow: a node that keeps failing is asked more and more rarely, and one
// that is back for good is trusted again.
func TestEjectionsGrow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100), node("b", "", 100))
		a := cl.nodes["a"]
		a.down = true
		c := cl.client(t)
		time.Sleep(time.Minute)
		a.set(func(a *fake) { a.down = false })
		start := time.Now()
		for stateOfA(t, c).State != client.StateUsable {
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(start); took > 2*time.Second {
			t.Errorf("noticed after %v", took)
		}
		time.Sleep(time.Minute)
		a.set(func(a *fake) { a.down = true })
		for stateOfA(t, c).State != client.StateEjected {
			calls(t, c, 1)
		}
		a.set(func(a *fake) { a.down = false })
		start = time.Now()
		for stateOfA(t, c).State != client.StateUsable {
			time.Sleep(10 * time.Millisecond)
		}
		if took := time.Since(start); took > 250*time.Millisecond {
			t.Errorf("the first ejection after a good time lasted %v", took)
		}
	})
}

// TestEjectionCountsAFailureOnce: a node fails while it owes the answer to a health check. The
// requests eject it. The end of the check is no further failure, so the node is asked again
// when the first ejection is over.
func TestEjectionCountsAFailureOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100), node("b", "", 100))
		a := cl.nodes["a"]
		c := cl.client(t)
		synctest.Wait()
		calls(t, c, 50)
		a.freeze()
		begun := a.checked()
		for a.checked() == begun {
			time.Sleep(time.Millisecond)
		}
		start := time.Now() // of the check, which ends after 1 s
		a.set(func(f *fake) { f.down = true })
		for stateOfA(t, c).State != client.StateEjected {
			calls(t, c, 1)
		}
		a.set(func(f *fake) {
			f.down, f.thawed = false, make(chan struct{}) // the check waits for the old one
			close(f.thawed)
		})
		for stateOfA(t, c).State != client.StateUsable {
			time.Sleep(time.Millisecond)
		}
		if took := time.Since(start); took > 1050*time.Millisecond {
			t.Errorf("usable %v after the begin of the check, want at its end", took)
		}
	})
}

// TestAllFail: when no node is left those that failed are asked anyway, so that calls
// succeed as soon as one works, and not when its ejection ends.
func TestAllFail(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "x", 100), node("b", "x", 100), node("c", "y", 100))
		for _, f := range cl.nodes {
			f.down = true
		}
		c := cl.client(t, client.WithZone("x"))
		time.Sleep(30 * time.Second)
		done := make(chan time.Time, 1)
		go func() {
			calls(t, c, 1)
			done <- time.Now()
		}()
		time.Sleep(500 * time.Millisecond)
		back := time.Now()
		cl.nodes["c"].set(func(f *fake) { f.down = false })
		if late := (<-done).Sub(back); late > 300*time.Millisecond {
			t.Errorf("the call succeeded %v after a node was back", late)
		}
	})
}

// TestOwnZone: as long as a node of the own zone lives, others get next to nothing,
// also when latencies vary.
func TestOwnZone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "x", 100), node("b", "x", 100), node("c", "y", 100))
		for i, id := range []string{"a", "b"} {
			cl.nodes[id].latency = time.Duration(i+1) * time.Millisecond
		}
		c := cl.client(t, client.WithZone("x"))
		synctest.Wait()
		var callers sync.WaitGroup
		for i := range 20 {
			callers.Go(func() {
				for k := range 500 {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
					if _, err := c.Next(ctx, fmt.Sprint("tag ", i%5)); err != nil {
						t.Error(err)
					}
					cancel()
					if i == 0 && k%100 == 50 { // one of the two fails now and then
						b := cl.nodes["b"]
						b.freeze()
						time.Sleep(300 * time.Millisecond)
						b.thaw()
					}
				}
			})
		}
		callers.Wait()
		a, b, other := cl.nodes["a"].asked(), cl.nodes["b"].asked(), cl.nodes["c"].asked()
		if other*100 > a+b+other {
			t.Errorf("the other zone got %d of %d requests", other, a+b+other)
		}
	})
}

// TestOwnZoneAfterRefusals: a node of the own zone that refused for long gets the zone's requests again soon after it serves,
// if the zone has no other node by then, and not many while it refuses.
func TestOwnZoneAfterRefusals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "x", 100), node("b", "x", 100), node("c", "y", 100))
		cl.refuse("a", leaf.ErrNotReady, func(string) bool { return true })
		c := cl.client(t, client.WithZone("x"))
		synctest.Wait()
		minute := func() (a, other int) {
			for range 600 {
				calls(t, c, 1)
				time.Sleep(100 * time.Millisecond)
			}
			return cl.nodes["a"].asked(), cl.nodes["c"].asked()
		}
		if a, other := minute(); a > 10 || other > 0 {
			t.Errorf("%d requests at the node that refuses and %d in the other zone", a, other)
		}
		cl.nodes["b"].set(func(b *fake) { b.down = true })
		if a, other := minute(); a < 10 || a > 20 || other != 600 {
			t.Errorf("%d requests at the node that refuses and %d in the other zone", a, other)
		}
		cl.nodes["a"].set(func(a *fake) { a.answer = nil })
		if a, other := minute(); other > 32 || a+other != 600 {
			t.Errorf("%d requests in the other zone, %d in the own one", other, a)
		}
	})
}
