package worker_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// stuck is a driver that heeds no context: once armed, the calls that it is told of wait for
// a lock which no call gives back. The call panics says takes the lock, and panics.
type stuck struct {
	worker.Registry

	armed   chan struct{} // closed when it begins
	free    chan struct{} // closed when the lock is free at last
	methods []string      // those that need the lock; nil: all
	panics  string        // this one panics once, while it holds the lock
	waits   atomic.Int64  // calls that wait for the lock
}

func newStuck(w *world, panics string, methods ...string) *stuck {
	return &stuck{Registry: worker.NewPool(w.records), armed: make(chan struct{}), free: make(chan struct{}), methods: methods, panics: panics}
}

func (s *stuck) enter(method string) {
	select {
	case <-s.armed:
	default:
		return
	}
	if s.panics == method {
		s.panics = ""
		panic("index out of range in " + method)
	}
	if s.panics == "" && (len(s.methods) == 0 || slices.Contains(s.methods, method)) {
		s.waits.Add(1)
		<-s.free
		s.waits.Add(-1)
	}
}

func (s *stuck) Claim(ctx context.Context, r worker.Request) (worker.Record, error) {
	s.enter("Claim")
	return s.Registry.Claim(ctx, r)
}

func (s *stuck) Renew(ctx context.Context, own worker.Record, bound int64) (worker.Record, error) {
	s.enter("Renew")
	return s.Registry.Renew(ctx, own, bound)
}

func (s *stuck) Release(ctx context.Context, own worker.Record, floor int64) error {
	s.enter("Release")
	return s.Registry.Release(ctx, own, floor)
}

func (s *stuck) List(ctx context.Context) ([]worker.Record, error) {
	s.enter("List")
	return s.Registry.List(ctx)
}

func (s *stuck) Announce(ctx context.Context, p worker.Peer) error {
	s.enter("Announce")
	return s.Registry.Announce(ctx, p)
}

func (s *stuck) Withdraw(ctx context.Context, p worker.Peer) error {
	s.enter("Withdraw")
	return s.Registry.Withdraw(ctx, p)
}

func (s *stuck) Peers(ctx context.Context) ([]worker.Peer, error) {
	s.enter("Peers")
	return s.Registry.Peers(ctx)
}

func (s *stuck) Close() error {
	s.enter("Close")
	return s.Registry.Close()
}

// TestDriverThatNeverReturns: a driver that panics while it holds its own lock, or that hangs
// for ever, raises an alarm with the cause long before T, and the alarm stays after T. Close
// still ends. When the driver returns, the node goes on by itself.
func TestDriverThatNeverReturns(t *testing.T) {
	for _, tt := range []struct {
		name   string
		panics string
		text   string
	}{
		{"hangs", "", "Registry.Renew has not returned"},
		{"panics with its lock", "Renew", "index out of range in Renew"},
	} {
		for _, heals := range []bool{true, false} {
			name := tt.name
			if heals {
				name += " and heals"
			}
			t.Run(name, func(t *testing.T) {
				run(t, worker.Leased, func(w *world) {
					s := newStuck(w, tt.panics)
					n := w.node("a")
					if err := n.start(s); err != nil {
						t.Fatal(err)
					}
					n.issue(10)
					close(s.armed)
					time.Sleep(20 * time.Second)
					n.issue(10)
					alarmed := func() {
						t.Helper()
						if text := n.alarms.has(leaf.AlarmRegistry); !strings.Contains(text, tt.text) || !strings.Contains(text, "restart the node") {
							t.Errorf("alarm %q, want %q", text, tt.text)
						}
					}
					alarmed()
					time.Sleep(2 * time.Minute) // T
					alarmed()
					n.refuses(leaf.ErrNotReady)
					if got := s.waits.Load(); got > 3 {
						t.Errorf("%d calls wait for the driver: each attempt adds one", got)
					}
					if heals {
						close(s.free)
						time.Sleep(10 * time.Second)
						n.issue(10)
						if text := n.alarms.has(leaf.AlarmRegistry); text != "" {
							t.Errorf("alarm %q", text)
						}
						n.stop()
						return
					}
					h := n.Holder
					n.Holder = nil
					ctx, cancel := context.WithTimeout(w.t.Context(), 10*time.Second)
					defer cancel()
					began := time.Now()
					if err := h.Close(ctx); err == nil || time.Since(began) > 20*time.Second {
						t.Errorf("close after %v: %v", time.Since(began), err)
					}
					close(s.free)
				})
			})
		}
	}
}

// TestStartBesideADriverThatNeverReturns: the first claim hangs. The alarm says so.
func TestStartBesideADriverThatNeverReturns(t *testing.T) {
	run(t, worker.Leased, func(w *world) {
		s := newStuck(w, "")
		close(s.armed)
		n := w.node("a")
		if err := n.start(s); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if text := n.alarms.has(leaf.AlarmRegistry); !strings.Contains(text, "Registry.Claim has not returned") {
			t.Errorf("alarm %q", text)
		}
		close(s.free)
		time.Sleep(10 * time.Second)
		n.issue(10)
		n.stop()
	})
}

// TestSideCallThatNeverReturns: a call that a node can do without hangs for ever. The node
// renews T and issues.
func TestSideCallThatNeverReturns(t *testing.T) {
	for _, method := range []string{"List", "Announce", "Peers", "Ask"} {
		t.Run(method, func(t *testing.T) {
			run(t, worker.Leased, func(w *world) {
				s := newStuck(w, "", method)
				close(s.armed)
				if err := w.records.Announce(w.t.Context(), worker.Peer{Address: "p:1", Clock: "p:1", Nonce: "p"}); err != nil {
					t.Fatal(err)
				}
				n := w.node("a", func(c *worker.Config) {
					c.Clock = worker.ClockCheck{Self: c.Address, Ask: func(context.Context, worker.Peer) (time.Time, error) {
						s.enter("Ask")
						return c.Runtime.Now(), nil
					}}
				})
				if err := n.start(s); err != nil {
					t.Fatal(err)
				}
				for range 10 {
					time.Sleep(time.Minute)
					n.issue(10)
				}
				close(s.free)
				n.stop()
			})
		})
	}
}
