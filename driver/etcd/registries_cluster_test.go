package etcd_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/driver/etcd"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/worker"
)

// beside returns the registry of worker IDs beside a store.
func (p *place) beside(t *testing.T, s *etcd.Store) *etcd.Records {
	t.Helper()
	cfg := p.config()
	cfg.Prefix += "/worker"
	workers, err := etcd.NewRecords(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = workers.Close() })
	workers.BelongTo(s)
	return workers
}

// TestRegistriesOfAnotherCluster is rule V: the keys become those of another cluster. The node hears of no owner and of no
// worker ID there, and makes no namespace.
func TestRegistriesOfAnotherCluster(t *testing.T) {
	p, s := bound(t)
	slots, err := s.Slots()
	if err != nil {
		t.Fatal(err)
	}
	defer slots.Close()
	workers := p.beside(t, s)
	for name, r := range map[string]*etcd.Records{"worker IDs": workers, "slots": slots} {
		if all, err := r.List(short(t)); err != nil || len(all) > 0 {
			t.Fatalf("List of the %s: %v, %v", name, all, err)
		}
	}
	p.put(t, p.prefix+"/owner", strings.Replace(p.value(t, "/owner"), s.KnownCluster(), "theirs", 1))
	count := len(p.keys(t, false))
	for name, r := range map[string]*etcd.Records{"worker IDs": workers, "slots": slots} {
		_, read := r.Namespace(short(t), nil)
		_, made := r.Namespace(short(t), &worker.StoredNamespace{Namespace: space})
		_, list := r.List(short(t))
		_, peers := r.Peers(short(t))
		for call, err := range map[string]error{"Namespace": read, "Namespace that is made": made, "List": list, "Peers": peers} {
			if !isOtherCluster(err) || errors.Is(err, worker.ErrLost) {
				t.Errorf("%s of the %s: %v; want a ClusterError alone", call, name, err)
			}
		}
	}
	if keys := p.keys(t, false); len(keys) != count {
		t.Errorf("keys %q; want no new one", keys)
	}
}

// TestNamespaceWhileTheStoreChanges: the keys become those of another cluster between the look at them and the creation of a
// namespace. It is not made. After another change of the same cluster's key it is.
func TestNamespaceWhileTheStoreChanges(t *testing.T) {
	for name, change := range map[string]func(owner, own string) string{
		"to another cluster's": func(owner, own string) string { return strings.Replace(owner, own, "theirs", 1) },
		"not in its cluster":   func(owner, _ string) string { return strings.Replace(owner, "{", "{ ", 1) },
	} {
		t.Run(name, func(t *testing.T) {
			p, s := bound(t)
			workers, owner := p.beside(t, s), p.value(t, "/owner")
			then := change(owner, s.KnownCluster())
			other := strings.Contains(then, "theirs")
			before(p.proxies[0], `"fingerprint"`, func() { p.put(t, p.prefix+"/owner", then) })
			made, err := workers.Namespace(short(t), &worker.StoredNamespace{Namespace: space})
			if other != isOtherCluster(err) || other != (made == nil) {
				t.Errorf("%+v, %v", made, err)
			}
			if p.value(t, "/owner") != then {
				t.Error("the store has not changed in the middle of the call")
			}
			p.put(t, p.prefix+"/owner", owner)
			if stored, err := workers.Namespace(short(t), nil); err != nil || other != (stored == nil) {
				t.Errorf("stored is %+v, %v", stored, err)
			}
		})
	}
}

// TestRegistryBehindTwoServers is rule V: the name of a registry leads to two servers. One answers which registry it is, and the
// claim that follows is made in the other. No node gets a number there, and none hears of the peers there.
func TestRegistryBehindTwoServers(t *testing.T) {
	ns := server.Etcd(t)
	p := newPlace(t, ns.Servers, ns.Root)
	r := p.records(t)
	if err := r.Expect("ours"); err != nil {
		t.Fatal(err)
	}
	if id, err := r.Identify(short(t), "ours"); id != "ours" || err != nil {
		t.Fatalf("ID %q, %v", id, err)
	}
	pool, now := worker.NewPool(r), time.Now().UnixMilli()
	claim := func(nonce string) error {
		_, err := pool.Claim(short(t), worker.Request{Namespace: space, Address: "10.0.0.1:8080", Nonce: nonce, Numbers: leaf.Range{Hi: 4}, Now: now, Bound: now + 1})
		return err
	}
	p.put(t, p.prefix+"/id", "theirs")
	none := claim("none")
	peers := func() error { _, err := pool.Peers(short(t)); return err }
	p.put(t, p.prefix+"/id", "ours")
	if err := claim("first"); err != nil {
		t.Fatalf("in its own registry: %v", err)
	}
	p.put(t, p.prefix+"/id", "theirs")
	count := len(p.keys(t, false))
	for call, err := range map[string]error{"a claim that makes the namespace": none, "a claim": claim("second"), "the peers": peers()} {
		if !isOtherCluster(err) || errors.Is(err, worker.ErrLost) {
			t.Errorf("%s: %v; want a ClusterError alone", call, err)
		}
	}
	if keys := p.keys(t, false); len(keys) != count {
		t.Errorf("keys %q; want no new one", keys)
	}
	p.wipe(t)
	if err := claim("third"); err != nil {
		t.Errorf("a registry that was wiped: %v", err)
	}
}

// nodes returns the directory of nodes beside a store.
func (p *place) nodes(t *testing.T, s *etcd.Store) *etcd.Directory {
	t.Helper()
	cfg := p.config()
	cfg.Prefix += "/node"
	d, err := etcd.NewDirectory(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	d.BelongTo(s)
	return d
}

// TestDirectoryOfAnotherRule: a node that finds another tag rule issues none of the tags there. It still has snowflake mode, and
// its neighbours may have the other rule, so it stays in the list of nodes.
func TestDirectoryOfAnotherRule(t *testing.T) {
	p, s := bound(t)
	d := p.nodes(t, s)
	p.put(t, p.prefix+"/owner", strings.Replace(p.value(t, "/owner"), `"rule":""`, `"rule":"b*=b"`, 1))
	if _, err := s.Rows(short(t)); !errors.Is(err, segment.ErrRule) {
		t.Fatalf("Rows: %v; want ErrRule", err)
	}
	if err := d.Put(short(t), discovery.Node{ID: "n1", Weight: 1, HTTP: "10.0.0.1:8080"}, time.Minute); err != nil {
		t.Error(err)
	}
	if all, err := d.List(short(t)); err != nil || len(all) != 1 {
		t.Errorf("%v, %v; want the node", all, err)
	}
}

// TestDirectoryOfAnotherCluster: a node is not put among the nodes of another cluster, and hears of none there.
func TestDirectoryOfAnotherCluster(t *testing.T) {
	p, s := bound(t)
	d := p.nodes(t, s)
	n := discovery.Node{ID: "n1", Weight: 1, HTTP: "10.0.0.1:8080"}
	if err := d.Put(short(t), n, time.Minute); err != nil {
		t.Fatal(err)
	}
	if all, err := d.List(short(t)); err != nil || len(all) != 1 || all[0].ID != n.ID {
		t.Errorf("%v, %v; want the node", all, err)
	}
	p.put(t, p.prefix+"/owner", strings.Replace(p.value(t, "/owner"), s.KnownCluster(), "theirs", 1))
	if err := d.Put(short(t), n, time.Minute); !isOtherCluster(err) {
		t.Errorf("Put: %v; want a ClusterError", err)
	}
	if all, err := d.List(short(t)); !isOtherCluster(err) {
		t.Errorf("List: %v, %v; want a ClusterError", all, err)
	}
}
