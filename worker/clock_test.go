package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

const year = 365 * 24 * time.Hour

// TestJumpAhead: a clock that jumps by a year makes a clock error; T stays, and the
// node heals by itself when the clock comes back.
func TestJumpAhead(t *testing.T) {
	for _, jump := range []time.Duration{time.Hour, 75 * year} { // less is for TestAJumpThatStands
		run(t, worker.Leased, func(w *world) {
			n := w.node("a").up()
			time.Sleep(5 * time.Second)
			n.issue(1000)
			limit := n.clock.Now().Add(2 * time.Minute).UnixMilli()
			n.clock.step(jump)
			time.Sleep(30 * time.Second)
			n.refuses(leaf.ErrClock)
			if st := n.Status(); st.Ready || st.Bound > limit || w.records.record(st.Number).Bound > limit {
				t.Errorf("jump %v: %+v", jump, st)
			}
			if n.alarms.has(leaf.AlarmClock) == "" {
				t.Error("no alarm")
			}
			n.clock.step(-jump)
			time.Sleep(5 * time.Second)
			n.issue(1000)
			if text := n.alarms.has(leaf.AlarmClock); text != "" {
				t.Errorf("alarm is still active: %s", text)
			}
		})
	}
}

// TestJumpIsNotBelievedByAClaim: neither is the jump written by a node that claims
// again meanwhile.
func TestJumpIsNotBelievedByAClaim(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a").up()
		n.issue(10)
		limit := n.clock.Now().Add(3 * time.Minute).UnixMilli()
		n.clock.step(year)
		number := n.Status().Number
		w.records.set(func(r *records) {
			rec := r.byNum[number]
			rec.Nonce, rec.Version = "somebody", "taken"
			r.byNum[number] = rec
		})
		time.Sleep(time.Minute)
		n.refuses(leaf.ErrClock)
		for number := range int64(4) {
			if bound := w.records.record(number).Bound; bound > limit {
				t.Errorf("worker ID %d is burnt until %v", number, time.UnixMilli(bound))
			}
		}
		n.confirm()
		time.Sleep(4 * time.Second)
		n.issue(1000)
	})
}

func TestOperatorConfirmsTheClock(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a").up()
		n.clock.step(time.Hour)
		time.Sleep(10 * time.Second)
		n.refuses(leaf.ErrClock)
		n.confirm()
		time.Sleep(4 * time.Second)
		n.issue(1000)
	})
}

func TestStepBack(t *testing.T) {
	for _, tt := range []struct {
		back time.Duration
		fail bool
	}{
		{3 * time.Millisecond, false}, {time.Second, true}, {time.Minute, true}, {time.Hour, true},
	} {
		run(t, worker.Leased, func(w *world) {
			n := w.node("a").up()
			time.Sleep(5 * time.Second)
			n.issue(5000)
			bound := n.Status().Bound
			n.clock.step(-tt.back)
			if !tt.fail {
				n.issue(5000)
				return
			}
			n.refuses(leaf.ErrClock)
			number := n.Status().Number
			if st := n.Status(); st.Ready || st.State != worker.Stalled {
				t.Errorf("status %+v", st)
			}
			time.Sleep(tt.back / 2)
			if st := n.Status(); st.Number == number && st.Bound > bound {
				t.Errorf("T was raised to %d while the clock was behind", st.Bound)
			}
			time.Sleep(tt.back/2 + 4*time.Second)
			n.issue(5000)
			// The clock comes back, which is no jump.
			n.clock.step(tt.back)
			time.Sleep(5 * time.Second)
			if tt.back < 10*time.Second {
				n.issue(5000)
			}
		})
	}
}

// TestReturnIsNoJump: a clock that steps back and comes back soon is believed.
func TestReturnIsNoJump(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a").up()
		n.issue(10)
		n.clock.step(-time.Hour)
		time.Sleep(10 * time.Second)
		n.issue(1000) // with another number
		n.clock.step(time.Hour)
		time.Sleep(5 * time.Second)
		n.issue(1000)
	})
}

// TestStepBackAcrossRestarts: whatever the clock does while the node is down, nothing
// repeats, and a pool lends another number when the own one lies far in the future.
func TestStepBackAcrossRestarts(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a", func(c *worker.Config) { c.Numbers.Hi = 16 }).up()
		for i, step := range []time.Duration{-time.Second, time.Hour, -time.Minute, -time.Hour, 10 * time.Second, -10 * time.Second} {
			n.issue(5000)
			if i%2 == 0 {
				n.crash()
			} else {
				n.stop()
			}
			n.clock.step(step)
			n.up()
			for end := time.Now().Add(10 * time.Second); !n.Status().Ready; time.Sleep(50 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("step %v: not ready: %+v", step, n.Status())
				}
			}
			n.issue(5000)
		}
	})
}

// TestFixedWaitsForItsFloor: a fixed number has no substitute: the node says until
// when it waits, and that a clock is wrong.
func TestFixedWaitsForItsFloor(t *testing.T) {
	run(t, worker.Fixed, func(w *world) {
		n := w.node("a", func(c *worker.Config) { c.Numbers.Hi = 1 }).up()
		n.clock.step(2 * time.Hour)
		n.confirm()
		time.Sleep(4 * time.Second)
		n.issue(5000)
		n.stop()
		n.clock.step(-2 * time.Hour)
		n.up()
		n.says(leaf.ErrClock, "may be used from 2024-01-01T02:00:")
		if n.alarms.has(leaf.AlarmClock) == "" {
			t.Error("no alarm")
		}
		time.Sleep(2*time.Hour + 5*time.Second)
		n.issue(5000)
		if text := n.alarms.has(leaf.AlarmClock); text != "" {
			t.Errorf("alarm is still active: %s", text)
		}
	})
}

// ask lets nodes tell each other their time, after half a round trip.
func ask(nodes map[string]*node, trip time.Duration) func(ctx context.Context, p worker.Peer) (time.Time, error) {
	return func(ctx context.Context, p worker.Peer) (time.Time, error) {
		if err := leaf.SystemRuntime().Wait(ctx, nil, trip/2); err != nil {
			return time.Time{}, err
		}
		n := nodes[p.Address]
		if n == nil {
			return time.Time{}, errors.New("connection refused")
		}
		now := n.clock.Now()
		return now, leaf.SystemRuntime().Wait(ctx, nil, trip/2)
	}
}

func TestPeerClockCheck(t *testing.T) {
	for _, tt := range []struct {
		name   string
		offset time.Duration
		trip   time.Duration
		want   string // of the error; "" starts
	}{
		{"equal", 0, time.Millisecond, ""},
		{"within the threshold", 4 * time.Second, time.Millisecond, ""},
		{"slow network", 4500 * time.Millisecond, 900 * time.Millisecond, ""},
		{"ahead", 10 * time.Minute, time.Millisecond, "clock is 10m0s ahead of the median of the 2 peers that answered, more than 5s: a:8080 +600.000 s, b:8080 +600.000 s"},
		{"behind", -10 * time.Minute, time.Millisecond, "clock is 10m0s behind the median of the 2 peers that answered, more than 5s: a:8080 -600.000 s, b:8080 -600.000 s"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run(t, worker.Leased, func(w *world) {
				nodes := map[string]*node{}
				check := func(c *worker.Config) {
					c.Clock = worker.ClockCheck{Ask: ask(nodes, tt.trip), Self: c.Address}
				}
				nodes["a:8080"], nodes["b:8080"] = w.node("a", check), w.node("b", check)
				nodes["a:8080"].up()
				time.Sleep(4 * time.Second) // announced by a renewal
				nodes["b:8080"].up()
				time.Sleep(4 * time.Second)
				c := w.node("c", check)
				c.clock.step(tt.offset)
				c.up()
				time.Sleep(2 * time.Second)
				if tt.want == "" {
					c.issue(10)
					return
				}
				c.says(leaf.ErrClock, tt.want)
				if used := w.records.used(); used != 2 {
					t.Errorf("%d worker IDs are taken: a node with a wrong clock took one", used)
				}
				c.clock.step(-tt.offset)
				time.Sleep(10 * time.Second)
				c.confirm()
				time.Sleep(10 * time.Second)
				c.issue(10)
			})
		})
	}
}

// TestPeerClockCheckAfterARestart: a node's own file does not spare it the comparison.
func TestPeerClockCheckAfterARestart(t *testing.T) {
	for _, kind := range []worker.Kind{worker.Leased, worker.Fixed} { // a fixed number has a file
		t.Run(kind.String(), func(t *testing.T) {
			run(t, kind, func(w *world) {
				nodes := map[string]*node{}
				check := func(c *worker.Config) {
					c.Clock = worker.ClockCheck{Ask: ask(nodes, time.Millisecond), Self: c.Address}
				}
				nodes["a:8080"] = w.node("a", check).up()
				c := w.node("c", check).up()
				time.Sleep(4 * time.Second) // announced by a renewal
				c.stop()
				c.clock.step(10 * time.Minute)
				if err := c.begin(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Second)
				c.says(leaf.ErrClock, "clock is 10m0s ahead of the median of the 1 peers that answered")
			})
		})
	}
}

// TestPeerStartsBetweenTwoClaims: a node with a wrong clock finds no peer before its first
// claim, which fails. It asks again before each claim, so it hears the peer that has started since.
func TestPeerStartsBetweenTwoClaims(t *testing.T) {
	for _, offset := range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		run(t, worker.Leased, func(w *world) {
			nodes := map[string]*node{} // not changed while c runs
			check := func(c *worker.Config) {
				c.Clock = worker.ClockCheck{Ask: ask(nodes, time.Millisecond), Self: c.Address}
			}
			a := w.node("a", check)
			nodes["a:8080"] = a
			w.records.cut("c:8080", true)
			c := w.node("c", check)
			c.clock.step(offset)
			c.up().says(leaf.ErrNotReady, "connection reset")
			a.up().issue(10)
			time.Sleep(time.Second) // c has tried again
			w.records.cut("c:8080", false)
			for range 20 {
				time.Sleep(time.Second)
				c.says(leaf.ErrClock, "the median of the 1 peers that answered")
			}
			if used := w.records.used(); used != 1 {
				t.Errorf("%d worker IDs are taken: a node with a wrong clock took one", used)
			}
		})
	}
}

// TestListOfPeersCannotBeRead: the registry does not list the peers, and could answer a claim a
// moment later. A node gets no number before a peer has looked at its clock.
func TestListOfPeersCannotBeRead(t *testing.T) {
	const ahead = "clock is 10m0s ahead of the median of the 1 peers that answered"
	for _, tt := range []struct {
		name   string
		unread int   // so many times
		listed error // of the records
		refuse bool
		want   error
		text   string
	}{
		{"once", 1, nil, false, leaf.ErrClock, ahead},
		{"while nothing can be read", 1000, errors.New("connection reset"), false, leaf.ErrNotReady, "list the peers: too many connections"},
		{"while all else is answered", 1000, nil, false, nil, ""},
		{"while all else is answered, refused", 1000, nil, true, leaf.ErrNotReady, "list the peers: too many connections"},
	} {
		for _, kind := range []worker.Kind{worker.Leased, worker.Fixed} {
			t.Run(tt.name+"/"+kind.String(), func(t *testing.T) {
				run(t, kind, func(w *world) {
					nodes := w.peers("a")
					time.Sleep(4 * time.Second) // announced by a renewal
					w.records.set(func(r *records) { r.unread, r.listed = tt.unread, tt.listed })
					c := w.node("c", func(c *worker.Config) {
						c.Clock = worker.ClockCheck{Ask: ask(nodes, time.Millisecond), Self: c.Address, RefuseAlone: tt.refuse}
					})
					c.clock.step(10 * time.Minute)
					c.up()
					time.Sleep(2 * time.Second)
					if tt.want == nil {
						c.issue(10)
						return
					}
					c.says(tt.want, tt.text)
					if used := w.records.used(); used != 1 {
						t.Errorf("%d worker IDs are taken: a node whose clock is not compared took one", used)
					}
					w.records.set(func(r *records) { r.unread, r.listed = 0, nil })
					time.Sleep(2 * time.Second)
					c.says(leaf.ErrClock, ahead)
				})
			})
		}
	}
}

// TestListOfPeersIsSlow: before a claim no renewal waits for the list, so it may take as long as a claim.
func TestListOfPeersIsSlow(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		nodes := w.peers("a")
		time.Sleep(4 * time.Second) // announced by a renewal
		w.records.set(func(r *records) { r.slow = 1500 * time.Millisecond })
		c := w.node("c", func(c *worker.Config) {
			c.Renew, c.Timeout = 500*time.Millisecond, 2*time.Second
			c.Clock = worker.ClockCheck{Ask: ask(nodes, time.Millisecond), Self: c.Address}
		})
		c.clock.step(10 * time.Minute)
		c.up()
		time.Sleep(5 * time.Second)
		c.says(leaf.ErrClock, "the median of the 1 peers that answered")
	})
}

func TestPeersDoNotAnswer(t *testing.T) {
	for _, refuse := range []bool{false, true} {
		run(t, worker.Leased, func(w *world) {
			check := func(c *worker.Config) {
				c.Clock = worker.ClockCheck{Ask: ask(nil, time.Millisecond), Self: c.Address, RefuseAlone: refuse}
			}
			a := w.node("a", check).up() // nobody to ask
			a.issue(1)
			time.Sleep(4 * time.Second)
			b := w.node("b", check).up()
			time.Sleep(2 * time.Second)
			if refuse {
				b.says(leaf.ErrClock, "none of 1 peers tells its time: a:8080 no answer (connection refused)")
				if _, err := b.Next(w.t.Context(), "key"); strings.Contains(err.Error(), "a:8080") {
					w.t.Errorf("a client hears of another node: %v", err)
				}
				return
			}
			b.issue(1)
		})
	}
}

// peers are running nodes that tell each other their time.
func (w *world) peers(names ...string) map[string]*node {
	w.t.Helper()
	nodes := map[string]*node{}
	for _, name := range names {
		nodes[name+":8080"] = w.node(name, func(c *worker.Config) {
			c.Clock = worker.ClockCheck{Ask: ask(nodes, time.Millisecond), Self: c.Address}
		})
	}
	for _, name := range names {
		nodes[name+":8080"].up()
	}
	return nodes
}

// TestSuspensionIsNoJump: a machine that was suspended finds its clock ahead by as much
// time as has passed. Nobody has to confirm that.
func TestSuspensionIsNoJump(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a").up()
		n.issue(10)
		n.clock.suspend(8 * time.Hour)
		time.Sleep(5 * time.Second) // T has passed meanwhile: first a renewal, then t
		n.issue(10)
		if text := n.alarms.has(leaf.AlarmClock); text != "" {
			t.Errorf("alarm %q", text)
		}
	})
}

// TestPeersConfirmAJump: when all clocks have jumped alike, the peers confirm it.
func TestPeersConfirmAJump(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		nodes := w.peers("a", "b")
		time.Sleep(4 * time.Second)
		for _, n := range nodes {
			n.clock.step(time.Hour)
		}
		time.Sleep(10 * time.Second)
		for _, n := range nodes {
			n.issue(1000)
		}
	})
}

// TestRunningNodeDiffers: a running node whose clock drifts away raises an alarm.
func TestRunningNodeDiffers(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		nodes := w.peers("a", "b")
		time.Sleep(2 * time.Minute)
		b := nodes["b:8080"]
		b.clock.step(8 * time.Second) // below the jump, above the threshold
		time.Sleep(2 * time.Minute)
		if text := b.alarms.has(leaf.AlarmClock); !strings.Contains(text, "ahead of the median of the 1 peers that answered") || !strings.Contains(text, "goes on issuing") {
			t.Errorf("alarm %q", text)
		}
		for _, a := range b.alarms.list() {
			if !strings.Contains(a.Text, "a:8080") || !strings.HasPrefix(a.Do, "compare the clocks of this node and of the peers named, and set right the one that is wrong") {
				t.Errorf("alarm %q says %q; want the peers named, and no clock that is not known to be wrong", a.Text, a.Do)
			}
		}
		b.issue(10)
		b.clock.step(-8 * time.Second)
		time.Sleep(2 * time.Minute)
		if text := b.alarms.has(leaf.AlarmClock); text != "" {
			t.Errorf("alarm is still active: %s", text)
		}
	})
}

// TestUseReserved: with the policy use-reserved a step back does not end issuing while
// reserved time is left, nor readiness; then both end.
func TestUseReserved(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		n := w.node("a", func(c *worker.Config) { c.Policy = snowflake.UseReserved }).up()
		time.Sleep(5 * time.Second)
		n.issue(10)
		n.clock.step(-time.Hour)
		n.issue(10)
		if st := n.Status(); !st.Ready || st.Reason == "" {
			t.Errorf("status with reserved time: %+v", st)
		}
		for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
			id, err := n.Next(w.t.Context(), "k")
			if err != nil {
				break
			}
			w.take(id, "a")
		}
		if st := n.Status(); st.Ready {
			t.Errorf("status without reserved time: %+v", st)
		}
	})
}
