package app_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/opaque"
	"github.com/leaf-idgen/leaf/segment"
)

// forgetKey is what the alarm about another key says to run where the tags are in etcd.
var forgetKey = regexp.MustCompile(`from the first store: etcdctl del (--prefix )?(\S+), and remove opaque.json of each`)

// TestOpaqueKeysInEtcd types what the alarm says where the tags are in etcd: the record of the other nodes' key goes, or of
// their key and its size, and the node makes opaque IDs.
func TestOpaqueKeysInEtcd(t *testing.T) {
	t.Parallel()
	for name, versionBits := range map[string]int{"key": 2, "size": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one := inEtcd(t)
			two := one
			two.DataDir = shortDir(t)
			withKeys := func(c *config.Config, versionBits int) {
				ring, err := opaque.NewRing(63, versionBits)
				if err != nil {
					t.Fatal(err)
				}
				c.Opaque.Keys = filepath.Join(t.TempDir(), "opaque.keys")
				writeRing(t, *c, ring)
			}
			withKeys(&one, 2)
			withKeys(&two, versionBits)
			a, stop := start(t, one)
			if _, err := manage.Ask(t.Context(), a.Backend(), manage.CreateTag{NewRow: segment.NewRow{Tag: "order", Start: 1, Step: 10}}); err != nil {
				t.Fatal(err)
			}
			until(t, "the first node makes opaque IDs", func() bool { return makesOpaqueIDs(t, a) })
			b, _ := start(t, two)
			says := forgetKey.FindStringSubmatch(alarmOf(t, b))
			if says == nil {
				t.Fatalf("the alarm does not say how the record is removed: %s", alarmOf(t, b))
			}
			stop()
			raw, err := clientv3.New(clientv3.Config{Endpoints: server.Etcd(t).Servers, Logger: zap.NewNop()})
			if err != nil {
				t.Fatal(err)
			}
			defer raw.Close()
			var prefix []clientv3.OpOption
			if says[1] != "" {
				prefix = append(prefix, clientv3.WithPrefix())
			}
			if r, err := raw.Delete(t.Context(), says[2], prefix...); err != nil || r.Deleted == 0 {
				t.Fatalf("nothing is deleted: %v, %v", r, err)
			}
			if err := os.Remove(filepath.Join(one.DataDir, "opaque.json")); err != nil {
				t.Error(err)
			}
			until(t, "the second node makes opaque IDs", func() bool { return makesOpaqueIDs(t, b) })
		})
	}
}

func alarmOf(t *testing.T, a *app.App) (body string) {
	t.Helper()
	until(t, "the alarm is raised", func() bool {
		_, body = get(t, a, "/readyz")
		return regexp.MustCompile("makes no opaque IDs").MatchString(body)
	})
	return body
}
