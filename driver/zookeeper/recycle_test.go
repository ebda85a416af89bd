package zookeeper_test

import (
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/worker"
)

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
			"claims": fmt.Sprintf(`{"format":1,"address":"10.0.0.1:%d","nonce":"n%d","floor":0,"released":false}`, n, n),
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

// TestPoolVersionsComeBack: the data versions of a number that was deleted and taken
// again are those of its first owner, and still the first owner has lost it.
func TestPoolVersionsComeBack(t *testing.T) {
	t.Parallel()
	p := newPlace(t, server.ZooKeeper(t))
	first, second := opened(t, p.cfg, newRecycle), opened(t, p.cfg, newRecycle)
	want := worker.StoredNamespace{Namespace: request(addr).Namespace}
	read := map[worker.Records]string{} // the incarnation that each process has read
	open := func(r worker.Records) {
		t.Helper()
		ns, err := r.Namespace(ctx(t), &want)
		if err != nil {
			t.Fatal(err)
		}
		read[r] = ns.Incarnation
	}
	open(first)
	put := func(r worker.Records, nonce, version string) (string, error) {
		return r.Put(ctx(t), worker.Record{Number: 7, Address: addr, Nonce: nonce, Bound: now, Version: version, Incarnation: read[r]})
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
	// Without an incarnation, as an operator's release writes, the nonce alone tells the two apart.
	for _, incarnation := range []string{read[first], ""} {
		read[first] = incarnation
		for _, nonce := range []string{"first", ""} {
			if version, err := put(first, nonce, mine); !errors.Is(err, worker.ErrLost) {
				t.Errorf("Put by %q in namespace %q with version %q, which came back as %q: %q, %v; want ErrLost", nonce, incarnation, mine, theirs, version, err)
			}
		}
	}
	if _, err := put(second, "second", theirs); err != nil {
		t.Errorf("Put by the second owner: %v", err)
	}
}

// TestPoolNonceIsGone: the node that stands for the owner of a number was deleted, and nothing else. The owner
// cannot renew, and must not try until its T: it has lost the number, and takes another one.
func TestPoolNonceIsGone(t *testing.T) {
	t.Parallel()
	p := newPlace(t, server.ZooKeeper(t))
	r := p.recycle(t)
	declare(t, r)
	own := claim(t, r, request(addr))
	path := p.root() + "/leaf_pool/claims/" + strconv.FormatInt(own.Number, 10)
	p.remove(t, path+"/"+p.children(t, path)[0])
	if got, err := r.Renew(ctx(t), own, own.Bound+1000); !errors.Is(err, worker.ErrLost) {
		t.Errorf("Renew = %+v, %v; want ErrLost", got, err)
	}
	late := request("10.0.0.9:8080")
	late.Numbers = leaf.Range{Lo: own.Number, Hi: own.Number + 1}
	if got, err := r.Claim(ctx(t), late); !errors.Is(err, worker.ErrFull) {
		t.Errorf("Claim before T = %+v, %v; want ErrFull", got, err)
	}
	late.Now += own.Bound + late.Margin - late.Now
	late.Bound = late.Now + horizon
	if got := claim(t, r, late); got.Floor != own.Bound {
		t.Errorf("Claim after T = %+v; want the floor %d", got, own.Bound)
	}
}

// TestPoolClaimRepeatedBesideAnother: the answer of a claim was lost, and its T has passed. The claim is repeated while
// another process takes the number, before each of its requests in turn. The nodes of claim and T are read one after the
// other: the T of the new owner is no T of the claim that was read before it.
func TestPoolClaimRepeatedBesideAnother(t *testing.T) {
	t.Parallel()
	p := newPlace(t, server.ZooKeeper(t))
	nth := int64(0)
	for more := true; more; {
		nth++
		more = repeatBeside(t, p.elsewhere(), nth)
	}
	if nth < 8 {
		t.Errorf("a claim has only %d requests", nth-1)
	}
}

// repeatBeside lets the other process come before the nth request, and reports whether there are as many.
func repeatBeside(t *testing.T, p place, nth int64) (reached bool) {
	t.Helper()
	near, wire := p.behind(t)
	defer wire.Close()
	first, second := near.recycle(t), p.recycle(t)
	declare(t, first)
	req := present("10.0.0.1:8080", -time.Minute)
	claim(t, first, req)
	if _, err := second.List(ctx(t)); err != nil { // its session is there
		t.Fatal(err)
	}
	var other worker.Record
	stopBefore(wire, func(n, _ int64, _ bool) bool { return n == nth }, func() {
		reached = true
		other = claim(t, second, present("10.0.0.2:8080", time.Minute))
	})
	own, err := first.Claim(ctx(t), req)
	wire.SetHook(nil)
	switch {
	case err != nil && !errors.Is(err, worker.ErrFull):
		t.Errorf("request %d: Claim: %v", nth, err)
	case reached && err == nil && own.Floor < other.Bound && other.Floor < own.Bound:
		t.Errorf("request %d: two processes have number 1 for the same time: %+v, %+v", nth, own, other)
	}
	return reached
}
