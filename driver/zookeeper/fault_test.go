package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/internal/test/proxy"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/worker"
)

// behind returns the same place through a proxy.
func (p place) behind(t *testing.T) (place, *proxy.Proxy) {
	t.Helper()
	wire, err := proxy.Start(p.cfg.Servers[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wire.Close)
	p.cfg.Servers = []string{wire.Addr()}
	return p, wire
}

// kinds are the two registries, for what must be true of both.
var kinds = []struct {
	name string
	open func(place, *testing.T) worker.Registry
}{
	{"original", func(p place, t *testing.T) worker.Registry { return p.original(t) }},
	{"recycle", func(p place, t *testing.T) worker.Registry { return p.recycle(t) }},
}

// until repeats a call until it succeeds.
func until(t *testing.T, what string, once time.Duration, do func(context.Context) error) {
	t.Helper()
	all := ctx(t)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		c, cancel := context.WithTimeout(all, once)
		err := do(c)
		cancel()
		if err == nil {
			return
		}
		select {
		case <-all.Done():
			t.Fatalf("%s: still %v", what, err)
		case <-tick.C:
		}
	}
}

// TestClaimBreaksAnywhere loses each request of a claim, or its reply, in turn. The
// claim is then repeated by the same process, or made by the next one, and must lead
// to one child, one owner and a floor that the lost claim respects.
func TestClaimBreaksAnywhere(t *testing.T) {
	t.Parallel()
	ns := server.ZooKeeper(t)
	for _, action := range []struct {
		name string
		do   proxy.Action
	}{{"request lost", proxy.CutNow}, {"reply lost", proxy.CutReply}} {
		for _, killed := range []bool{false, true} {
			if killed && action.do == proxy.CutNow && !long.Asked() {
				continue // the servers know as much as after the reply before was lost
			}
			t.Run(fmt.Sprintf("%s, killed %v", action.name, killed), func(t *testing.T) {
				t.Parallel()
				p := newPlace(t, ns)
				p.cfg.SetAdoptWatch(30 * time.Millisecond)
				nth := int64(0)
				for more := true; more; {
					nth++
					more = false
					t.Run(fmt.Sprintf("request %d", nth), func(t *testing.T) { more = breakClaim(t, p.elsewhere(), action.do, nth, killed) })
				}
				if nth < 8 {
					t.Errorf("a claim has only %d requests", nth-1)
				}
			})
		}
	}
}

// breakClaim breaks the nth piece that the client sends, and reports whether the
// claim sent as many.
func breakClaim(t *testing.T, p place, action proxy.Action, nth int64, killed bool) bool {
	t.Helper()
	declare(t, p.original(t))
	wired, wire := p.behind(t)
	defer wire.Close()
	wired.cfg.SessionTimeout = 600 * time.Millisecond // the next process waits for its end
	o := wired.original(t)
	if _, err := o.Peers(ctx(t)); err != nil { // the session is not what we break
		t.Fatal(err)
	}
	var pieces atomic.Int64
	var broken atomic.Bool
	wire.SetHook(func(from proxy.Side, _ []byte) proxy.Action {
		if from == proxy.Client && pieces.Add(1) == nth {
			broken.Store(true)
			return action
		}
		return proxy.Pass
	})
	req := request(addr)
	first, err := o.Claim(ctx(t), req)
	wire.SetHook(nil)
	if !broken.Load() {
		return false
	}
	if err == nil && first.Number != 1 {
		t.Fatalf("piece %d: Claim = %+v", nth, first)
	}
	next := o
	if killed {
		o.Close()
		next, req = p.original(t), request(addr)
	}
	var got worker.Record
	until(t, "the next claim", 5*time.Second, func(c context.Context) error {
		var err error
		got, err = next.Claim(c, req)
		return err
	})
	names := p.children(t, p.root()+"/forever")
	if len(names) != 1 || got.Number != 1 || p.get(t, p.root()+"/forever/"+names[0]) != javaData(addr, got.Bound) {
		t.Errorf("piece %d: claim = %+v, forever holds %q", nth, got, names)
	}
	if killed && err == nil && got.Floor < first.Bound {
		t.Errorf("piece %d: the second process starts at %d, below T %d of the first", nth, got.Floor, first.Bound)
	}
	if guards := p.children(t, p.root()+"/leaf_owner/"+addr); len(guards) != 1 || guards[0] != req.Nonce {
		t.Errorf("piece %d: the owner node has %q; want the nonce", nth, guards)
	}
	if _, err := next.Renew(ctx(t), got, got.Bound+1); err != nil {
		t.Errorf("piece %d: Renew: %v", nth, err)
	}
	return true
}

// TestLateRenewal: a renewal that was given up arrives when somebody else owns the
// number, and must change nothing.
func TestLateRenewal(t *testing.T) {
	t.Parallel()
	ns := server.ZooKeeper(t)
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, ns)
			second := kind.open(p, t)
			declare(t, second)
			wired, wire := p.behind(t)
			first := kind.open(wired, t)
			r := claim(t, first, request(addr))

			wire.Hold(proxy.Client)
			short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if got, err := first.Renew(short, r, r.Bound+3*horizon); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("Renew while nothing passes = %+v, %v", got, err)
			}
			if err := second.Free(ctx(t), r.Number); err != nil {
				t.Fatal(err)
			}
			req := request(addr)
			req.Numbers.Lo, req.Numbers.Hi = r.Number, r.Number+1
			next := claim(t, second, req)
			next.Incarnation, next.After = "", "" // as List leaves it
			wire.Hold()
			if got, err := first.Renew(ctx(t), r, r.Bound+3*horizon); !errors.Is(err, worker.ErrLost) {
				t.Errorf("Renew of a lost claim = %+v, %v; want ErrLost", got, err)
			}
			records, err := second.List(ctx(t))
			if err != nil || len(records) != 1 || records[0] != next {
				t.Errorf("List = %+v, %v; want %+v", records, err, next)
			}
		})
	}
}
