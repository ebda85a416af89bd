package worker_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// crowd is many announced peers, and who asked them.
type crowd struct {
	mu    sync.Mutex
	asked map[string]int
	off   map[string]time.Duration // how far a peer's clock is off; a peer that is not in it does not answer
}

func (w *world) crowd(count int) *crowd {
	w.t.Helper()
	c := &crowd{asked: map[string]int{}, off: map[string]time.Duration{}}
	for i := range count {
		address := fmt.Sprintf("p%d:8080", i)
		c.off[address] = 0
		if err := w.records.Announce(w.t.Context(), worker.Peer{Address: address, Clock: address, Nonce: address}); err != nil {
			w.t.Fatal(err)
		}
	}
	return c
}

// answers lets a node ask the crowd, whose right clocks are those of that node before it
// was moved.
func (c *crowd) answers(n *node) {
	begin, right := time.Now(), n.clock.Now()
	n.cfg.Clock = worker.ClockCheck{Self: n.cfg.Address, Ask: func(_ context.Context, p worker.Peer) (time.Time, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.asked[p.Address]++
		off, ok := c.off[p.Address]
		if !ok {
			return time.Time{}, errors.New("connection refused")
		}
		return right.Add(time.Since(begin) + off), nil
	}}
}

// all moves the clocks of the whole crowd.
func (c *crowd) all(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for address := range c.off {
		c.off[address] = by
	}
}

// total returns how often peers were asked, and how many of them.
func (c *crowd) total() (questions, peers int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.asked {
		questions += n
	}
	return questions, len(c.asked)
}

// TestOneWrongPeer: one peer whose clock is far off keeps no right node from starting,
// and lets no wrong one start. With two peers the node's own clock decides.
func TestOneWrongPeer(t *testing.T) {
	for _, peers := range []int{2, 3, 5, 50} {
		for _, off := range []time.Duration{time.Hour, -time.Hour, 10 * year} {
			run(t, worker.Leased, func(w *world) {
				c := w.crowd(peers)
				c.off["p0:8080"] = off
				n := w.node("a")
				c.answers(n)
				n.up()
				time.Sleep(time.Second)
				n.issue(10)
				time.Sleep(10 * time.Minute)
				if text := n.alarms.has(leaf.AlarmClock); text != "" {
					t.Errorf("%d peers: %s", peers, text)
				}
				if peers == 2 {
					return
				}
				far := w.node("b")
				c.answers(far)
				far.clock.step(off / 2)
				far.up()
				time.Sleep(time.Minute)
				far.refuses(leaf.ErrClock)
			})
		}
	}
}

// TestSampleOfPeers: of many peers eight are asked each minute, the same ones until the
// minute is over, and others later.
func TestSampleOfPeers(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		c := w.crowd(50)
		n := w.node("a")
		c.answers(n)
		n.clock.step(time.Hour)
		n.up()
		time.Sleep(55 * time.Second)
		n.refuses(leaf.ErrClock)
		if _, peers := c.total(); peers != 8 {
			t.Errorf("%d of 50 peers were asked at the start", peers)
		}
		n.clock.step(-time.Hour)
		time.Sleep(10 * time.Second)
		n.confirm()
		time.Sleep(10 * time.Second)
		n.issue(10)
		before, _ := c.total()
		time.Sleep(time.Hour)
		if questions, peers := c.total(); questions-before > 8*61 || peers < 40 {
			t.Errorf("%d questions to %d peers in an hour", questions-before, peers)
		}
	})
}

// TestSampleOfTheDead: if the peers of a sample do not answer, others are asked before
// the node starts on its own. Here all but those that are asked first are alive.
func TestSampleOfTheDead(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		c := w.crowd(24)
		n := w.node("a")
		c.answers(n)
		alive, dead := n.cfg.Clock.Ask, map[string]bool{}
		n.cfg.Clock.Ask = func(ctx context.Context, p worker.Peer) (time.Time, error) {
			now, err := alive(ctx, p)
			c.mu.Lock()
			defer c.mu.Unlock()
			if len(dead) < 8 {
				dead[p.Address] = true
			}
			if dead[p.Address] {
				return now, errors.New("connection refused")
			}
			return now, err
		}
		n.clock.step(time.Hour)
		n.up()
		time.Sleep(time.Second)
		n.refuses(leaf.ErrClock)
	})
}

// TestJumpedNodeIsNotAsked: a node whose clock has jumped keeps no right node from
// starting, whether it holds a number or has lost it.
func TestJumpedNodeIsNotAsked(t *testing.T) {
	for _, loses := range []bool{false, true} {
		run(t, worker.Leased, func(w *world) {
			nodes := w.peers("a")
			a := nodes["a:8080"]
			time.Sleep(4 * time.Second)
			a.clock.step(time.Hour)
			if loses {
				number := a.Status().Number
				w.records.set(func(r *records) {
					rec := r.byNum[number]
					rec.Nonce, rec.Version = "other", "other"
					r.byNum[number] = rec
				})
			}
			time.Sleep(4 * time.Second)
			a.refuses(leaf.ErrClock)
			w.records.set(func(r *records) {
				if p, ok := r.peers["a:8080"]; ok && (loses || p.Clock != worker.Doubtful+"a:8080") {
					t.Errorf("lost=%t: it is announced as %+v", loses, p)
				}
			})
			for _, name := range []string{"b", "c"} {
				n := w.node(name, func(c *worker.Config) {
					c.Clock = worker.ClockCheck{Ask: ask(nodes, time.Millisecond), Self: c.Address}
				})
				nodes[name+":8080"] = n
				n.up()
				n.issue(10)
			}
			time.Sleep(time.Minute)
			a.refuses(leaf.ErrClock)
			a.clock.step(-time.Hour)
			time.Sleep(10 * time.Second)
			a.issue(10)
			w.records.set(func(r *records) {
				if p := r.peers["a:8080"]; p.Clock != "a:8080" {
					t.Errorf("the clock is right, and it is announced as %+v", p)
				}
			})
		})
	}
}

// TestWhoConfirmsAJump: the log says who confirmed it; a tie of the peers confirms nothing.
func TestWhoConfirmsAJump(t *testing.T) {
	for _, tt := range []struct {
		off  []time.Duration
		want string // in the log, "" if it is not confirmed
	}{
		{[]time.Duration{time.Hour, time.Hour, 0}, `by="3 peers"`},
		{[]time.Duration{time.Hour}, `by="1 peers"`},
		{[]time.Duration{time.Hour, 0}, ""},
		{[]time.Duration{time.Hour, 0, 0}, ""},
	} {
		run(t, worker.Leased, func(w *world) {
			c := w.crowd(len(tt.off))
			n := w.node("a")
			c.answers(n)
			var log lines
			n.cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			n.up()
			c.mu.Lock()
			for i, off := range tt.off {
				c.off[fmt.Sprintf("p%d:8080", i)] = off
			}
			c.mu.Unlock()
			n.clock.step(time.Hour)
			time.Sleep(30 * time.Second)
			text := log.String()
			if confirmed := strings.Contains(text, "the wall clock is confirmed"); confirmed != (tt.want != "") || !strings.Contains(text, tt.want) {
				t.Errorf("%v: %s", tt.off, text)
			}
		})
	}
}

// lines collects a log.
type lines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestSilentPeersEndNoAlarm: the clock of a node differs from those of its peers, and then none of them answers. Nothing has shown that
// the clock is right, so the alarm lasts until peers say so.
func TestSilentPeersEndNoAlarm(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		c := w.crowd(3)
		n := w.node("a")
		c.answers(n)
		n.up()
		alarm := func(when string, want bool) {
			t.Helper()
			time.Sleep(5 * time.Minute)
			if text := n.alarms.has(leaf.AlarmClock); (text != "") != want {
				t.Errorf("%s: alarm %q", when, text)
			}
		}
		alarm("all clocks are right", false)
		c.all(10 * time.Second)
		alarm("the peers are ahead", true)
		c.mu.Lock()
		off := c.off
		c.off = nil
		c.mu.Unlock()
		alarm("no peer answers", true)
		c.mu.Lock()
		c.off = off
		c.mu.Unlock()
		c.all(0)
		alarm("the peers agree", false)
	})
}
