package etcd_test

import (
	"errors"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-idgen/leaf/driver/etcd"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
)

// TestIdentifyWithoutRight: an administrator has granted each key that a registry needed before it had an ID. A node goes on
// without one, or could claim nothing. With the right to read the ID it hears of it.
func TestIdentifyWithoutRight(t *testing.T) {
	e, p := withPasswords(t)
	cfg := p.config()
	cfg.Username, cfg.Password = "leaf", "secret"
	records, err := etcd.NewRecords(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	wants := func(want string) {
		t.Helper()
		if id, err := records.Identify(short(t), "ours"); id != want || err != nil {
			t.Errorf("%q, %v; want %q", id, err, want)
		}
	}
	wants("")
	if err := records.Expect("ours"); err != nil {
		t.Fatal(err)
	}
	grant(t, e, "/leaf/bounds/", "/leaf/bounds0", clientv3.PermissionType(clientv3.PermRead))
	grant(t, e, "/leaf/claims/", "/leaf/claims0", clientv3.PermissionType(clientv3.PermRead))
	if _, err := records.List(short(t)); err != nil {
		t.Errorf("the records: %v", err)
	}
	grant(t, e, "/leaf/id", "", clientv3.PermissionType(clientv3.PermRead))
	wants("")
	if _, err := asRoot(t, e).Put(short(t), "/leaf/id", "theirs"); err != nil {
		t.Fatal(err)
	}
	wants("theirs")
}

// TestIdentifyBesideAStore: the ID of the registry beside a store is that of the store's cluster, whatever ID a node brings. After a
// wipe the store gets it back.
func TestIdentifyBesideAStore(t *testing.T) {
	ns := server.Etcd(t)
	p := newPlace(t, ns.Servers, ns.Root)
	s := p.store(t)
	r := p.beside(t, s)
	id, err := r.Identify(short(t), "ours")
	if len(id) != len(segment.NewClusterID()) || err != nil {
		t.Fatalf("ID %q, %v; want that of a cluster", id, err)
	}
	wants := func(when, own string) {
		t.Helper()
		if found, err := r.Identify(short(t), own); found != id || err != nil {
			t.Errorf("%s: ID %q, %v; want %q", when, found, err, id)
		}
		if keys := strings.Join(p.keys(t, false), " "); strings.Contains(keys, "/worker/") {
			t.Errorf("%s: keys %s; want none of the registry", when, keys)
		}
	}
	wants("again", "theirs")
	p.wipe(t)
	wants("after a wipe", "")
	wants("after a wipe", "ours")
	if found, err := p.store(t).ClusterID(short(t)); found != id || err != nil {
		t.Errorf("a node that starts after a wipe: %q, %v; want %q", found, err, id)
	}
}

// TestIdentifyBesideAnotherRule: a node with segment mode asks for the ID after the tag rule has changed. Its store notices the
// change all the same (rule K).
func TestIdentifyBesideAnotherRule(t *testing.T) {
	p, s := bound(t)
	p.put(t, p.prefix+"/owner", strings.Replace(p.value(t, "/owner"), `"rule":""`, `"rule":"b*=b"`, 1))
	if id, err := p.beside(t, s).Identify(short(t), ""); id != s.KnownCluster() || err != nil {
		t.Errorf("ID %q, %v; want %q", id, err, s.KnownCluster())
	}
	if _, err := s.Reserve(short(t), order()); !errors.Is(err, segment.ErrRule) {
		t.Errorf("Reserve: %v; want ErrRule", err)
	}
}
