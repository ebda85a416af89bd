package etcd_test

import (
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-idgen/leaf/driver/etcd"
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
