package zookeeper_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"sync/atomic"
	"testing"

	"github.com/leaf-idgen/leaf/internal/test/proxy"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/worker"
)

// TestOriginalRenewalArrivesLate: a renewal of ours that had no answer arrives before any request of the next
// one, such as between the two reads that look for it. The claim is ours all the same.
func TestOriginalRenewalArrivesLate(t *testing.T) {
	t.Parallel()
	p := newPlace(t, server.ZooKeeper(t))
	direct := p.original(t)
	declare(t, direct)
	far, wire := p.behind(t)
	o := far.original(t)
	own := claim(t, o, request(addr))
	beforeEach(t, 5, func(nth int64, arrives func(*proxy.Proxy, func())) {
		late, err := direct.Renew(ctx(t), own, own.Bound+1) // has no answer: own stays
		if err != nil {
			t.Fatal(err)
		}
		arrives(wire, func() {
			if late, err = direct.Renew(ctx(t), late, late.Bound+1); err != nil {
				t.Error(err)
			}
		})
		now, err := o.Renew(ctx(t), own, own.Bound+10)
		wire.SetHook(nil)
		if err != nil {
			t.Fatalf("a renewal arrived before request %d of the next one: %v", nth, err)
		}
		if now.Bound < late.Bound {
			t.Errorf("request %d: the bound is %d, and %d was stored", nth, now.Bound, late.Bound)
		}
		own = now
	})
}

// TestOriginalClaimArrivesLate: the number of a Java server is adopted. A claim of ours that had no answer ends before
// any request of the one that repeats it, such as between its reads of the owner and of the child. It is ours all the same.
func TestOriginalClaimArrivesLate(t *testing.T) {
	t.Parallel()
	ns := server.ZooKeeper(t)
	beforeEach(t, 10, func(nth int64, arrives func(*proxy.Proxy, func())) {
		p := newPlace(t, ns)
		declare(t, p.original(t))
		p.java(t, addr, now-1)
		direct, req := p.original(t), request(addr)
		far, wire := p.behind(t)
		o := far.original(t)
		short, cancel := context.WithTimeout(t.Context(), watch*2/3)
		if r, err := o.Claim(short, req); err == nil { // it knows the child from now on
			t.Fatalf("Claim before the child was watched = %+v", r)
		}
		cancel()
		arrives(wire, func() { claim(t, direct, req) })
		if r, err := o.Claim(ctx(t), req); err != nil || r.Number != 0 {
			t.Errorf("a claim arrived before request %d of the next one: %+v, %v; want number 0", nth, r, err)
		}
		wire.SetHook(nil)
	})
}

// beforeEach runs a round in which a late call arrives before the first request of another one, then a round in which it
// arrives before the second one, and so on, until a call has no such request. It must have had at least least of them. A round
// takes the hook off the wire when its call has ended.
func beforeEach(t *testing.T, least int64, round func(nth int64, arrives func(wire *proxy.Proxy, late func()))) {
	t.Helper()
	nth := int64(0)
	for arrived := true; arrived; {
		nth, arrived = nth+1, false
		round(nth, func(wire *proxy.Proxy, late func()) {
			stopBefore(wire, func(n, _ int64, _ bool) bool { return n == nth }, func() {
				arrived = true
				late()
			})
		})
	}
	if requests := nth - 1; requests < least {
		t.Errorf("a call that looks for an earlier one has %d requests, want at least %d", requests, least)
	}
}

// TestOriginalServerIsBehind: the session ends between the reads of the owner and of the child. The next one begins at a
// server that shows the child as it was before its last write. The claim is ours all the same, and goes on where its file says.
func TestOriginalServerIsBehind(t *testing.T) {
	t.Parallel()
	p := newPlace(t, server.ZooKeeper(t))
	direct := p.original(t)
	declare(t, direct)
	far, wire := p.behind(t)
	o := far.original(t)
	own := claim(t, o, request(addr))
	behind := func() (shown *atomic.Bool) {
		shown = new(atomic.Bool)
		wire.SetHook(func(from proxy.Side, data []byte) proxy.Action {
			const fromEnd = 36 // of the version, in the last field of an answer
			if from == proxy.Server && bytes.Contains(data, []byte(`"timestamp":`)) && !shown.Swap(true) {
				version := data[len(data)-fromEnd:]
				binary.BigEndian.PutUint32(version, binary.BigEndian.Uint32(version)-1)
			}
			return proxy.Pass
		})
		return shown
	}

	if _, err := direct.Renew(ctx(t), own, own.Bound+1); err != nil { // has no answer: own stays
		t.Fatal(err)
	}
	shown := behind()
	renewed, err := o.Renew(ctx(t), own, own.Bound+10)
	if err != nil || !shown.Load() {
		t.Fatalf("Renew = %v, and an older child was shown: %v; want the claim", err, shown.Load())
	}

	next := request(addr) // of the process that follows in the data directory
	next.Previous = &worker.Previous{Number: own.Number, Nonce: own.Nonce, Inner: now + 7, Bound: renewed.Bound, Incarnation: own.Incarnation}
	shown = behind()
	if r := claim(t, o, next); r.Floor != now+7 || !shown.Load() {
		t.Errorf("claim = %+v, and an older child was shown: %v; want the floor %d of the file", r, shown.Load(), now+7)
	}
}
