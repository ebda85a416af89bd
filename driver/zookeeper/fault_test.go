package zookeeper_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-idgen/leaf/test/proxy"
	"github.com/leaf-idgen/leaf/test/server"
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
			if killed && action.do == proxy.CutNow && !server.Long() {
				continue // the servers know as much as after the reply before was lost
			}
			t.Run(fmt.Sprintf("%s, killed %v", action.name, killed), func(t *testing.T) {
				t.Parallel()
				for nth := int64(1); ; nth++ {
					p := newPlace(t, ns)
					p.cfg.AdoptWatch = 30 * time.Millisecond
					if !breakClaim(t, p, action.do, nth, killed) {
						if nth < 8 {
							t.Errorf("a claim has only %d requests", nth-1)
						}
						return
					}
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
	p := newPlace(t, server.Namespace{Servers: e.Servers(), Root: ""})
	p.cfg.ConnectTimeout = time.Second
	var group sync.WaitGroup
	stop := make(chan struct{})
	var renewed [2]atomic.Int64
	for i, kind := range kinds {
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
		if i != leader && !server.Long() {
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

// TestPoolListIsPipelined: 1024 numbers over a wire of 20 ms take no 1024 round trips.
func TestPoolListIsPipelined(t *testing.T) {
	t.Parallel()
	p := newPlace(t, server.ZooKeeper(t))
	local := p.recycle(t)
	declare(t, local)
	root := p.root() + "/leaf_pool"
	for n := range 1024 {
		ops := []any{}
		for folder, data := range map[string]string{
			"claims": fmt.Sprintf(`{"format":1,"address":"10.0.0.1:%d","nonce":"n%d","floor":0,"released":false,"extends":false}`, n, n),
			"bounds": fmt.Sprintf(`{"format":1,"bound":%d}`, now+horizon),
		} {
			ops = append(ops, &zk.CreateRequest{Path: fmt.Sprintf("%s/%s/%d", root, folder, n), Data: []byte(data), Acl: zk.WorldACL(zk.PermAll)})
		}
		if _, err := p.zk.Multi(ops...); err != nil {
			t.Fatal(err)
		}
	}
	wired, wire := p.behind(t)
	wire.Delay(10 * time.Millisecond)
	far := wired.recycle(t)
	start := time.Now()
	records, err := far.List(ctx(t))
	if err != nil || len(records) != 1024 {
		t.Fatalf("List = %d records, %v", len(records), err)
	}
	if took := time.Since(start); took > 10*time.Second { // in turn: 41 s
		t.Errorf("List took %v", took)
	} else {
		t.Logf("List took %v", took.Round(time.Millisecond))
	}
	if r, err := far.Claim(ctx(t), request(addr)); !errors.Is(err, worker.ErrFull) {
		t.Errorf("Claim = %+v, %v; want ErrFull", r, err)
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

// TestPoolVersionsComeBack: the data versions of a number that was deleted and taken
// again are those of its first owner, and still the first owner has lost it.
func TestPoolVersionsComeBack(t *testing.T) {
	t.Parallel()
	p := newPlace(t, server.ZooKeeper(t))
	first, second := opened(t, p.cfg, newRecycle), opened(t, p.cfg, newRecycle)
	want := worker.StoredNamespace{Namespace: request(addr).Namespace}
	open := func(r worker.Records) {
		t.Helper()
		if _, err := r.Namespace(ctx(t), &want); err != nil {
			t.Fatal(err)
		}
	}
	open(first)
	put := func(r worker.Records, nonce, version string) (string, error) {
		return r.Put(ctx(t), worker.Record{Number: 7, Address: addr, Nonce: nonce, Bound: now, Version: version})
	}
	mine, err := put(first, "first", "")
	if err != nil {
		t.Fatal(err)
	}
	p.remove(t, p.root())
	open(second)
	// The first process read its namespace before the wipe.
	if version, err := put(first, "first", ""); !errors.Is(err, worker.ErrLost) {
		t.Errorf("Put into a namespace that was never read = %q, %v; want ErrLost", version, err)
	}
	theirs, err := put(second, "second", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, nonce := range []string{"first", ""} {
		if version, err := put(first, nonce, mine); !errors.Is(err, worker.ErrLost) {
			t.Errorf("Put by %q with version %q, which came back as %q: %q, %v; want ErrLost", nonce, mine, theirs, version, err)
		}
	}
	if _, err := put(second, "second", theirs); err != nil {
		t.Errorf("Put by the second owner: %v", err)
	}
}

// TestFenceEntryDeletedByHand: a version never comes back for a tag.
func TestFenceEntryDeletedByHand(t *testing.T) {
	t.Parallel()
	p := newPlace(t, server.ZooKeeper(t))
	f := p.fence(t)
	space, _, err := f.Open(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	old, err := f.Swap(ctx(t), space, "a/b", nil, 5)
	if err != nil {
		t.Fatal(err)
	}
	p.remove(t, p.cfg.Chroot+"/leaf/fence/test/"+space+"/a%2Fb")
	again, err := f.Swap(ctx(t), space, "a/b", nil, 5)
	if err != nil || again.Version <= old.Version {
		t.Fatalf("Swap = %+v, %v; want a version above %d", again, err, old.Version)
	}
	if e, err := f.Swap(ctx(t), space, "a/b", &old, 9); err == nil {
		t.Errorf("Swap from a version before the deletion = %+v", e)
	}
	// All entries of the incarnation are lost, but its name is left.
	p.remove(t, p.cfg.Chroot+"/leaf/fence/test/"+space)
	if next, created, err := f.Open(ctx(t)); err != nil || !created || next == space {
		t.Errorf("Open after the loss = %q, %v, %v; want a new incarnation", next, created, err)
	}
}

// TestFenceReplyLost: an unknown outcome is no knowledge, and the second sending of
// a Swap changes nothing.
func TestFenceReplyLost(t *testing.T) {
	t.Parallel()
	p := newPlace(t, server.ZooKeeper(t))
	wired, wire := p.behind(t)
	f := wired.fence(t)
	space, _, err := f.Open(ctx(t))
	if err != nil {
		t.Fatal(err)
	}
	old, err := f.Swap(ctx(t), space, "order", nil, 5)
	if err != nil {
		t.Fatal(err)
	}
	lost := wire.CutReplyAfter(func(data []byte) bool { return bytes.Contains(data, []byte(`"end":6`)) })
	if e, err := f.Swap(ctx(t), space, "order", &old, 6); err == nil {
		t.Errorf("Swap whose reply was lost = %+v", e)
	}
	<-lost
	if e, err := f.Swap(ctx(t), space, "order", &old, 6); err == nil {
		t.Errorf("second sending = %+v; want ErrFenceMoved", e)
	}
	if e, ok, err := f.Read(ctx(t), space, "order"); err != nil || !ok || e.End != 6 {
		t.Errorf("Read = %+v, %v, %v; want end 6", e, ok, err)
	}
}
