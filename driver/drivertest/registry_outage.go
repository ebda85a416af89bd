package drivertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/worker"
)

var outageCases = []registryCase{
	{"partition", func(t *testing.T, b *registryBench) { outage(t, b, b.Partition) }},
	{"pause", func(t *testing.T, b *registryBench) { outage(t, b, b.Pause) }},
}

// soon is how long after the end of its context a call may take to return.
const soon = 2 * time.Second

// outage black-holes the registry: every call returns soon after its context has
// ended, with an error that claims no knowledge, and all of it heals by itself.
func outage(t *testing.T, b *registryBench, begin func(t *testing.T) (end func())) {
	if begin == nil {
		t.Skip("this registry cannot fail in this way")
	}
	owner, r := b.founded(t)
	leaver := b.start(t)
	leaving := claim(t, leaver, b.request(address(2)))
	peer := worker.Peer{Address: r.Address, Clock: r.Address, Nonce: r.Nonce, Number: r.Number}
	if err := owner.Announce(ctx(t), peer); err != nil {
		t.Fatal(err)
	}
	late := b.request(address(3))

	end := begin(t)
	fresh := b.start(t)
	for _, call := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"Renew", func(c context.Context) error { _, err := owner.Renew(c, r, r.Bound+1000); return err }},
		{"Renew again", func(c context.Context) error { _, err := owner.Renew(c, r, r.Bound+2000); return err }},
		{"Announce", func(c context.Context) error { return owner.Announce(c, peer) }},
		{"Withdraw", func(c context.Context) error { return owner.Withdraw(c, peer) }},
		{"List", func(c context.Context) error { _, err := owner.List(c); return err }},
		{"Peers", func(c context.Context) error { _, err := owner.Peers(c); return err }},
		{"Init", func(c context.Context) error { return owner.Init(c, b.namespace()) }},
		{"Free", func(c context.Context) error { return owner.Free(c, 999) }},
		{"Release", func(c context.Context) error { return leaver.Release(c, leaving, b.now) }},
		{"Claim on a new connection", func(c context.Context) error { _, err := fresh.Claim(c, late); return err }},
	} {
		short, cancel := context.WithTimeout(t.Context(), 150*time.Millisecond)
		start := time.Now()
		err := call.do(short)
		took := time.Since(start)
		cancel()
		switch {
		case err == nil:
			t.Errorf("%s succeeded although nothing can pass", call.name)
		case took > soon:
			t.Errorf("%s returned after %v", call.name, took)
		}
		for _, sentinel := range []error{worker.ErrLost, worker.ErrTaken, worker.ErrFull, worker.ErrForeign, worker.ErrNotFound} {
			if errors.Is(err, sentinel) {
				t.Errorf("%s: %v; the registry did not answer, so that is not known", call.name, err)
			}
		}
	}
	end()

	until(t, "Renew after the outage", func(c context.Context) error {
		next, err := owner.Renew(c, r, r.Bound+1500)
		if errors.Is(err, worker.ErrLost) {
			t.Fatalf("Renew after the outage: %v", err)
		}
		if err == nil {
			r = next
		}
		return err
	})
	until(t, "Announce after the outage", func(c context.Context) error { return owner.Announce(c, peer) })
	until(t, "Peers after the outage", func(c context.Context) error {
		got, err := owner.Peers(c)
		if err == nil && (len(got) != 1 || got[0] != peer) {
			t.Errorf("Peers = %+v; want %+v", got, peer)
		}
		return err
	})
	var got worker.Record
	until(t, "Claim after the outage", func(c context.Context) error {
		var err error
		got, err = fresh.Claim(c, late)
		return err
	})
	checkClaim(t, late, got)
	until(t, "List after the outage", func(c context.Context) error { // a connection of before may end only now
		_, err := owner.List(c)
		return err
	})
	if kept, _ := stored(t, owner, r.Number); kept.Nonce != r.Nonce || kept.Bound != r.Bound {
		t.Errorf("after the outage the registry holds %+v, the owner %+v", kept, r)
	}
}
