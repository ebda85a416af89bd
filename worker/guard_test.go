package worker_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/worker"
)

// panicky panics once in one method.
type panicky struct {
	worker.Registry

	method string
	armed  *atomic.Bool
}

func (p panicky) at(method string) {
	if p.method == method && p.armed.Swap(false) {
		panic("the driver panics in " + method)
	}
}

func (p panicky) Claim(ctx context.Context, r worker.Request) (worker.Record, error) {
	p.at("Claim")
	return p.Registry.Claim(ctx, r)
}

func (p panicky) Renew(ctx context.Context, own worker.Record, bound int64) (worker.Record, error) {
	p.at("Renew")
	return p.Registry.Renew(ctx, own, bound)
}

func (p panicky) Release(ctx context.Context, own worker.Record, floor int64) error {
	p.at("Release")
	return p.Registry.Release(ctx, own, floor)
}

func (p panicky) List(ctx context.Context) ([]worker.Record, error) {
	p.at("List")
	return p.Registry.List(ctx)
}

func (p panicky) Announce(ctx context.Context, x worker.Peer) error {
	p.at("Announce")
	return p.Registry.Announce(ctx, x)
}

func (p panicky) Withdraw(ctx context.Context, x worker.Peer) error {
	p.at("Withdraw")
	return p.Registry.Withdraw(ctx, x)
}

func (p panicky) Peers(ctx context.Context) ([]worker.Peer, error) {
	p.at("Peers")
	return p.Registry.Peers(ctx)
}

func (p panicky) Close() error {
	p.at("Close")
	return p.Registry.Close()
}

// TestDriverPanics: a panic in a registry's driver, or in the function that asks a peer,
// costs the call and nothing else.
func TestDriverPanics(t *testing.T) {
	for _, method := range []string{"Claim", "Renew", "Release", "List", "Announce", "Withdraw", "Peers", "Close", "Ask"} {
		t.Run(method, func(t *testing.T) {
			run(t, worker.Leased, func(w *world) {
				peer := w.node("peer").up()
				var armed atomic.Bool
				armed.Store(true)
				p := panicky{worker.NewPool(w.records), method, &armed}
				n := w.node("a", func(c *worker.Config) {
					c.Clock = worker.ClockCheck{Self: c.Address, Ask: func(context.Context, worker.Peer) (time.Time, error) {
						p.at("Ask")
						return peer.clock.Now(), nil
					}}
				})
				peer.cfg.Clock.Self = peer.cfg.Address
				if err := p.Registry.Announce(w.t.Context(), worker.Peer{Address: "p:1", Clock: "p:1", Nonce: "p"}); err != nil {
					t.Fatal(err)
				}
				if err := n.start(p); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Minute)
				for _, a := range n.alarms.list() {
					if strings.Contains(a.Text, "\n") {
						t.Errorf("an alarm of several lines: %s", a.Text)
					}
				}
				n.issue(10)
				h := n.Holder
				n.Holder = nil
				err := h.Close(w.t.Context())
				if atStop := method == "Release" || method == "Withdraw" || method == "Close"; (err != nil) != atStop {
					t.Errorf("close: %v", err)
				}
				if armed.Load() {
					t.Error("the method was not called: that proves nothing")
				}
			})
		})
	}
}
