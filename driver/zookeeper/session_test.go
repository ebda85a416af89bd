package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/internal/test/proxy"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/worker"
)

// TestSessionExpires: what is durable is not tied to a session, and what is gets
// made again by Announce.
func TestSessionExpires(t *testing.T) {
	t.Parallel()
	ns := server.ZooKeeper(t)
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t, ns)
			p.cfg.SessionTimeout = time.Second
			watcher := kind.open(p, t)
			declare(t, watcher)
			wired, wire := p.behind(t)
			owner := kind.open(wired, t)
			r := claim(t, owner, request(addr))
			peer := worker.Peer{Address: addr, Clock: addr, Nonce: r.Nonce, Number: r.Number}
			if err := owner.Announce(ctx(t), peer); err != nil {
				t.Fatal(err)
			}
			count := func(want int) func(context.Context) error {
				return func(c context.Context) error {
					got, err := watcher.Peers(c)
					if err == nil && len(got) != want {
						err = fmt.Errorf("peers %+v, want %d", got, want)
					}
					return err
				}
			}
			until(t, "the process is announced", limit, count(1))
			wire.Refuse()
			wire.Cut()
			until(t, "its session expires", limit, count(0))
			if err := wire.Accept(); err != nil {
				t.Fatal(err)
			}
			until(t, "Renew in a new session", 2*time.Second, func(c context.Context) error {
				next, err := owner.Renew(c, r, r.Bound+1000)
				if errors.Is(err, worker.ErrLost) {
					t.Fatalf("a claim was lost with a session: %v", err)
				}
				if err == nil {
					r = next
				}
				return err
			})
			if err := owner.Announce(ctx(t), peer); err != nil {
				t.Fatal(err)
			}
			until(t, "the process is announced again", limit, count(1))
		})
	}
}

// TestElection kills the leader of three servers, and freezes it when it runs again: no
// claim is lost, and renewals go on.
func TestElection(t *testing.T) {
	e := server.OwnZooKeeper(t, 3)
	var group sync.WaitGroup
	stop := make(chan struct{})
	var renewed [2]atomic.Int64
	for i, kind := range kinds {
		p := newPlace(t, server.Namespace{Servers: e.Servers(), Root: ""})
		p.cfg.ConnectTimeout = time.Second
		o := kind.open(p, t)
		declare(t, o)
		r := claim(t, o, request(addr))
		group.Go(func() {
			tick := time.NewTicker(20 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-stop:
					return
				case <-tick.C:
				}
				c, cancel := context.WithTimeout(context.Background(), 2*time.Second)
				next, err := o.Renew(c, r, r.Bound+20)
				cancel()
				if errors.Is(err, worker.ErrLost) {
					t.Errorf("%s: Renew: %v", kind.name, err)
					return
				}
				if err == nil {
					r = next
					renewed[i].Add(1)
				}
			}
		})
	}
	goOn := func(what string) {
		t.Helper()
		start := time.Now()
		for i := range renewed {
			before := renewed[i].Load()
			until(t, what, limit, func(context.Context) error {
				if renewed[i].Load() < before+3 {
					return errors.New("no renewal")
				}
				return nil
			})
		}
		t.Logf("%s: renewed after %v", what, time.Since(start).Round(time.Millisecond))
	}
	goOn("all run")
	leader, err := e.Leader(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	e.Kill(leader)
	goOn("the leader was killed")
	if err := e.Restart(ctx(t), leader); err != nil {
		t.Fatal(err)
	}
	for i := range e.Len() {
		if i != leader && !long.Asked() {
			continue
		}
		e.Pause(i)
		goOn(fmt.Sprintf("server %d is frozen", i))
		e.Resume(i)
		if err := e.Wait(ctx(t)); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	group.Wait()
}

// TestServersReplaced: the servers come back without their data. They know less than
// the session has seen and refuse it; the claim is lost, and can be made again,
// without a restart.
func TestServersReplaced(t *testing.T) {
	t.Parallel()
	before, after := newPlace(t, server.ZooKeeper(t)), newPlace(t, server.Namespace{Servers: server.OwnZooKeeper(t, 1).Servers()})
	for range 200 { // transactions that the second server never heard of
		before.set(t, "/zookeeper", "")
	}
	old, toOld := before.behind(t)
	replaced, toNew := after.behind(t)
	cfg := old.cfg
	cfg.Chroot, cfg.SessionTimeout, cfg.ConnectTimeout = "", time.Second, time.Second
	cfg.Servers = append(cfg.Servers, replaced.cfg.Servers...)
	cfg.Name = "replaced"
	toNew.Refuse()
	o := place{cfg: cfg}.original(t)
	declare(t, o)
	defer before.remove(t, "/snowflake/replaced")
	r := claim(t, o, request(addr))
	toOld.Refuse()
	toOld.Cut()
	if err := toNew.Accept(); err != nil {
		t.Fatal(err)
	}
	until(t, "the claim is lost", 2*time.Second, func(c context.Context) error {
		if _, err := o.Renew(c, r, r.Bound+1); !errors.Is(err, worker.ErrLost) {
			return fmt.Errorf("Renew: %w", err)
		}
		return nil
	})
	if got := claim(t, o, request(addr)); got.Floor != now+quiet {
		t.Errorf("claim = %+v; want the floor %d of a registry that may have been wiped", got, now+quiet)
	}
}

// TestCallsAreBounded: however many callers give up while nothing answers, the calls
// that are still under way are few, and the handle heals.
func TestCallsAreBounded(t *testing.T) {
	t.Parallel()
	p := declared(t)
	wired, wire := p.behind(t)
	o := wired.original(t)
	r := claim(t, o, request(addr))
	wire.Hold(proxy.Client, proxy.Server)
	before := runtime.NumGoroutine()
	var group sync.WaitGroup
	for range 600 {
		group.Go(func() {
			short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, err := o.Renew(short, r, r.Bound+1); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Renew while nothing passes: %v", err)
			}
		})
	}
	group.Wait()
	const inFlight, others = 256, 100 // other tests run too
	if left := runtime.NumGoroutine() - before; left > inFlight+others {
		t.Errorf("%d goroutines are left", left)
	}
	wire.Hold()
	until(t, "Renew after the outage", 5*time.Second, func(c context.Context) error {
		_, err := o.Renew(c, r, r.Bound+1)
		return err
	})
}

// TestCloseEndsCalls: a call that waits for servers which are not there ends.
func TestCloseEndsCalls(t *testing.T) {
	t.Parallel()
	wire, err := proxy.Start("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	defer wire.Close()
	o := place{cfg: configOf(wire.Addr())}.original(t)
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := o.List(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("List without servers: %v", err)
	}
	if err := errors.Join(o.Close(), o.Close()); err != nil {
		t.Errorf("Close: %v", err)
	}
	if _, err := o.List(t.Context()); err == nil {
		t.Error("List after Close succeeded")
	}
}
