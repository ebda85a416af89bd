package etcd_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/driver/etcd"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
)

var only = segment.Binding{Store: "default"}

// bound returns a bound store with the row order at 100, and its place.
func bound(t *testing.T) (*place, *etcd.Store) {
	t.Helper()
	ns := server.Etcd(t)
	p := newPlace(t, ns.Servers, ns.Root)
	s := p.store(t)
	create(t, s, 100)
	if err := s.Bind(short(t), only); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Reserve(short(t), order()); err != nil {
		t.Fatal(err)
	}
	return p, s
}

// calls are those that change something, or tell the node something.
func calls(t *testing.T, s *etcd.Store) map[string]error {
	t.Helper()
	_, reserve := s.Reserve(short(t), order())
	_, raise := s.Raise(short(t), "order", 200)
	_, notices := s.Notices(short(t))
	return map[string]error{
		"Bind": s.Bind(short(t), only), "Reserve": reserve, "Raise": raise, "Notices": notices,
		"ReturnUnused": s.ReturnUnused(short(t), "order", 107, 100),
		"Create":       s.Create(short(t), segment.NewRow{Tag: "b", Start: 1, Step: 7}),
		"Update":       s.Update(short(t), "order", segment.Change{Step: new(int64(9))}),
		"Delete":       s.Delete(short(t), "order"),
		"Post":         s.Post(short(t), segment.Notice{Tag: "order", Regress: 5}),
		"Answer":       s.Answer(short(t), segment.Answer{Tag: "order", Node: "n", High: 5}),
		"Enter":        s.Enter(short(t), segment.Member{Node: "n"}),
		"Leave":        s.Leave(short(t), "n"),
		"Forget":       s.Forget(short(t), "order", 1),
	}
}

// TestStoreOfAnotherCluster is rule V: the keys are another cluster's from one moment on. Nothing is
// taken from it, and nothing is changed there.
func TestStoreOfAnotherCluster(t *testing.T) {
	p, s := bound(t)
	own, row := p.value(t, "/owner"), p.value(t, "/rows/order")
	p.put(t, p.prefix+"/owner", strings.Replace(own, s.KnownCluster(), "theirs", 1))
	for name, err := range calls(t, s) {
		other, ok := errors.AsType[*segment.ClusterError](err)
		if !ok || other.Own != s.KnownCluster() || other.Found != "theirs" {
			t.Errorf("%s: %v; want a ClusterError", name, err)
		}
	}
	if now := p.value(t, "/rows/order"); now != row {
		t.Errorf("the row was %s and is %s", row, now)
	}
	if keys := p.keys(t, false); len(keys) != 2 {
		t.Errorf("keys %q; want owner and the row", keys)
	}
	p.put(t, p.prefix+"/owner", own)
	if _, err := s.Reserve(short(t), order()); err != nil {
		t.Errorf("Reserve after the own keys are back: %v", err)
	}
	late := p.store(t)
	if err := late.Expect("of before"); err != nil {
		t.Fatal(err)
	}
	if err := late.Bind(short(t), only); !isOtherCluster(err) {
		t.Errorf("Bind of a node of another cluster: %v; want a ClusterError", err)
	}
	if err := s.Expect("of before"); !isOtherCluster(err) {
		t.Errorf("Expect after Bind: %v; want a ClusterError", err)
	}
}

func isOtherCluster(err error) bool {
	_, ok := errors.AsType[*segment.ClusterError](err)
	return ok
}

// TestStoreOwnerIsLost: without the key owner the node serves, and its next Bind writes the same ID.
func TestStoreOwnerIsLost(t *testing.T) {
	p, s := bound(t)
	own := p.value(t, "/owner")
	if _, err := p.raw.Delete(short(t), p.prefix+"/owner"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Reserve(short(t), order()); err != nil {
		t.Errorf("Reserve without the key owner: %v", err)
	}
	if err := s.Verify(short(t), only); err != nil || len(p.keys(t, false)) != 1 {
		t.Errorf("Verify: %v; keys %q", err, p.keys(t, false))
	}
	if err := s.Bind(short(t), only); err != nil || p.value(t, "/owner") != own {
		t.Errorf("Bind: %v; owner was %s and is %s", err, own, p.value(t, "/owner"))
	}
	for _, text := range []string{"", "x", `{"format":1}`} {
		p.put(t, p.prefix+"/owner", text)
		if _, err := s.Reserve(short(t), order()); err == nil || !strings.Contains(err.Error(), p.prefix+"/owner") {
			t.Errorf("Reserve beside the owner %q: %v; want an error that names the key", text, err)
		}
	}
}

// TestStoreOfAnotherRule is rule K: each load compares the binding in its own transaction.
func TestStoreOfAnotherRule(t *testing.T) {
	p, s := bound(t)
	row := p.value(t, "/rows/order")
	p.put(t, p.prefix+"/owner", strings.Replace(p.value(t, "/owner"), `"rule":""`, `"rule":"r2"`, 1))
	for name, err := range calls(t, s) {
		if !errors.Is(err, segment.ErrRule) {
			t.Errorf("%s: %v; want ErrRule", name, err)
		}
	}
	if now := p.value(t, "/rows/order"); now != row {
		t.Errorf("the row was %s and is %s", row, now)
	}
}

// TestStoreTwoBind: of two nodes that make the cluster's ID at once, one makes it.
func TestStoreTwoBind(t *testing.T) {
	slow, s, other := race(t)
	before(slow, `"cluster"`, func() {
		if err := other.Bind(short(t), only); err != nil {
			t.Error(err)
		}
	})
	if err := s.Bind(short(t), only); err != nil || s.KnownCluster() != other.KnownCluster() {
		t.Errorf("Bind: %v; the clusters are %q and %q", err, s.KnownCluster(), other.KnownCluster())
	}
}
