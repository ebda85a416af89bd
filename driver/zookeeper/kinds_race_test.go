package zookeeper_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/internal/test/proxy"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/worker"
)

// kindRace is two claims, one of each kind, that meet at one moment.
type kindRace struct {
	kind   string // of the first claim
	before string // the kind that had the name before, or "neither"
	gone   bool   // that kind has a claim of the first claimer whose T has passed
	nth    int64  // the second claim comes before this request of the first one
	mth    int64  // the second claim stops before this multi until the first one has ended; 0: it does not
}

// TestKindsStartAtOnce: a claim of one kind comes between two requests of a claim of the
// other kind. At most one of the two gets the number and can renew it. If both get it, one
// starts where the other one ends.
func TestKindsStartAtOnce(t *testing.T) {
	t.Parallel()
	ns := server.ZooKeeper(t)
	for kind, other := range otherKind {
		for name, race := range map[string]kindRace{
			"where the other one was": {before: other},
			"where neither was":       {before: "neither"},
			"where its T has passed":  {before: kind, gone: true},
		} {
			race.kind = kind
			t.Run(kind+" starts "+name, func(t *testing.T) {
				t.Parallel()
				race.everywhere(t, ns)
			})
		}
		for _, mth := range []int64{2, 3} { // the one that makes the namespace, and the next one
			race := kindRace{kind: kind, before: "neither", mth: mth}
			t.Run(fmt.Sprintf("%s starts within the other one's claim, before multi %d", kind, mth), func(t *testing.T) {
				t.Parallel()
				race.everywhere(t, ns)
			})
		}
	}
}

// everywhere lets the second claim come before each third request of the first one, or with LEAF_LONG=1
// before each. Each race ends with its sessions: those of a hundred races would be pinged at once.
func (k kindRace) everywhere(t *testing.T, ns server.Namespace) {
	p := newPlace(t, ns)
	step := long.Load(int64(3), 1)
	k.nth = 1
	for more := true; more; k.nth += step {
		more = false
		t.Run(fmt.Sprintf("request %d", k.nth), func(t *testing.T) { more = k.run(t, p.elsewhere()) })
	}
	if k.nth < 8+step {
		t.Errorf("a claim has only %d requests", k.nth-step-1)
	}
}

// prepare makes what is there before the race. Number 1 is the next one of either kind.
func (k kindRace) prepare(t *testing.T, p place) {
	t.Helper()
	original := p.original(t)
	for _, r := range []worker.Registry{original, p.recycle(t)} { // the folders are there
		declare(t, r)
	}
	switch k.before { // the last one has ended the namespace of the first one
	case "zookeeper":
		declare(t, original)
	case "neither":
		p.remove(t, p.root()+"/leaf_pool/namespace")
	}
	p.remove(t, p.create(t, p.root()+"/forever/x-", "", zk.FlagSequence)) // number 0, which takes longer
	if k.gone {
		r := openKind[k.kind](t, p)
		claim(t, r, present("10.0.0.1:8080", -time.Minute))
		if err := r.Close(); err != nil { // with its session
			t.Fatal(err)
		}
	}
}

// run reports whether the first claim has as many requests.
func (k kindRace) run(t *testing.T, p place) bool {
	t.Helper()
	k.prepare(t, p)
	near, nearWire := p.behind(t)
	defer nearWire.Close()
	far, farWire := p.behind(t)
	defer farWire.Close()
	first, second := openKind[k.kind](t, near), openKind[otherKind[k.kind]](t, far)
	for _, r := range []worker.Registry{first, second} {
		if _, err := r.List(ctx(t)); err != nil { // the session is not what comes before
			t.Fatal(err)
		}
	}
	stopped, resume := make(chan struct{}), make(chan struct{})
	stopBefore(farWire, func(n, multis int64, multi bool) bool { return multi && multis == k.mth }, func() {
		close(stopped)
		<-resume
	})
	var other worker.Record
	var otherErr error
	reached, ended := false, make(chan struct{})
	stopBefore(nearWire, func(n, _ int64, _ bool) bool { return n == k.nth }, func() {
		reached = true
		go func() {
			defer close(ended)
			other, otherErr = second.Claim(ctx(t), present("10.0.0.2:8080", time.Minute))
		}()
		select {
		case <-ended:
		case <-stopped:
		}
	})
	own, err := first.Claim(ctx(t), present("10.0.0.1:8080", time.Minute))
	nearWire.SetHook(nil)
	close(resume)
	if !reached {
		return false
	}
	<-ended
	holders := 0
	for _, c := range []struct {
		worker.Registry
		worker.Record
		error
	}{{first, own, err}, {second, other, otherErr}} {
		switch {
		case c.error == nil:
			if _, err := c.Renew(ctx(t), c.Record, c.Bound+1); err == nil {
				holders++
			}
		case !errors.Is(c.error, worker.ErrTaken) && !strings.Contains(c.Error(), "is being replaced"):
			t.Errorf("request %d: Claim: %v", k.nth, c.error)
		}
	}
	if holders > 1 {
		t.Errorf("request %d: both kinds hold number 1", k.nth)
	}
	// An owner that has lost its number issues until it hears of the loss, at most until T.
	if err == nil && otherErr == nil && own.Floor < other.Bound && other.Floor < own.Bound {
		t.Errorf("request %d: both kinds have number 1 for the same time: %+v, %+v", k.nth, own, other)
	}
	return true
}

// stopBefore calls stop before the first request of the client that is the one. n and multis
// count the requests so far and the multis among them.
func stopBefore(wire *proxy.Proxy, one func(n, multis int64, multi bool) bool, stop func()) {
	const opMulti = 14 // its place is behind the length and the number of the request
	var n, multis atomic.Int64
	var done atomic.Bool
	wire.SetHook(func(from proxy.Side, data []byte) proxy.Action {
		if from != proxy.Client {
			return proxy.Pass
		}
		multi := len(data) >= 12 && binary.BigEndian.Uint32(data[8:]) == opMulti
		if multi {
			multis.Add(1)
		}
		if one(n.Add(1), multis.Load(), multi) && !done.Swap(true) {
			stop()
		}
		return proxy.Pass
	})
}
