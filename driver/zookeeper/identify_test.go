package zookeeper_test

import (
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/leaf-idgen/leaf/driver/zookeeper"
)

// TestIdentifyWithoutRight: an administrator lets nodes write what a registry needed before it had an ID, and nothing beside it.
func TestIdentifyWithoutRight(t *testing.T) {
	forKinds(t, func(t *testing.T, p place, kind string) {
		claim(t, openKind[kind](t, p), request(addr))
		identify := p.original(t).Identify
		if kind == "zookeeper-recycle" {
			identify = opened(t, p.cfg, zookeeper.NewRecycle).Identify
		}
		acl := func(rights int32) {
			if _, err := p.zk.SetACL(p.root(), zk.WorldACL(rights), -1); err != nil {
				t.Fatal(err)
			}
		}
		acl(zk.PermRead | zk.PermAdmin)
		defer acl(zk.PermAll)
		if id, err := identify(ctx(t), "ours"); id != "" || err != nil {
			t.Errorf("without the right to make the ID: %q, %v; want none, or no node could claim", id, err)
		}
	})
}
