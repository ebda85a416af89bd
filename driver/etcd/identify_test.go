package etcd_test

import (
	"context"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leaf-idgen/leaf/driver/etcd"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// TestIdentifyWithoutRight: an administrator has granted each key that a registry needed before it had an ID. A node goes on
// without one, or could claim nothing. With the right to read the ID it hears of it.
func TestIdentifyWithoutRight(t *testing.T) {
	e := server.OwnEtcd(t, 1)
	p := newPlace(t, e.Servers(), "/leaf")
	root, err := clientv3.New(clientv3.Config{Endpoints: e.Servers(), Username: "root", Password: "r"})
	if err == nil {
		defer root.Close()
		for _, step := range []func(context.Context) error{
			func(c context.Context) error { _, err := p.raw.UserAdd(c, "root", "r"); return err },
			func(c context.Context) error { _, err := p.raw.UserGrantRole(c, "root", "root"); return err },
			func(c context.Context) error { _, err := p.raw.UserAdd(c, "leaf", "secret"); return err },
			func(c context.Context) error { _, err := p.raw.RoleAdd(c, "leaf"); return err },
			func(c context.Context) error { _, err := p.raw.UserGrantRole(c, "leaf", "leaf"); return err },
			func(c context.Context) error { _, err := p.raw.AuthEnable(c); return err },
		} {
			if err == nil {
				err = step(short(t))
			}
		}
	}
	if err != nil {
		t.Fatal(err)
	}
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
	if _, err := root.RoleGrantPermission(short(t), "leaf", "/leaf/id", "", clientv3.PermissionType(clientv3.PermRead)); err != nil {
		t.Fatal(err)
	}
	wants("")
	if _, err := root.Put(short(t), "/leaf/id", "theirs"); err != nil {
		t.Fatal(err)
	}
	wants("theirs")
}
