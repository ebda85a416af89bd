package app_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
)

// TestFenceWhileTheFirstStoreIsAway: a node with a new data directory starts while its first database, which has the ID of the
// cluster, is away. It issues the tags of the other one, under the cluster fence.
func TestFenceWhileTheFirstStoreIsAway(t *testing.T) {
	t.Parallel()
	at := server.Etcd(t)
	dir, c := divided(t)
	b, err := sqldb.Open("sqlite:"+filepath.Join(dir, "b.db"), sqldb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	if err := b.Create(t.Context(), segment.NewRow{Tag: "user", Start: 1, Step: 1000}); err != nil {
		t.Fatal(err)
	}
	c.DataDir, c.Snowflake.Enable = shortDir(t), false
	c.Stores[0] = "a=mysql://leaf@127.0.0.1:1/leaf"
	c.Segment.ClusterFence = "etcd://" + strings.Join(at.Servers, ",") + "/" + strings.Trim(at.Root, "/")
	a, _ := start(t, c)
	until(t, "the node issues the tag of the other database", func() bool { status, _ := get(t, a, "/api/segment/get/user"); return status == 200 })
}

// TestFenceOfOthers: two clusters are given one cluster fence. The nodes of the second one take no range under it, and those of the
// first go on.
func TestFenceOfOthers(t *testing.T) {
	t.Parallel()
	at := server.Etcd(t)
	node := func() *app.App {
		c := inStoreFile(t)
		c.Snowflake.Enable = false
		c.Segment.ClusterFence = "etcd://" + strings.Join(at.Servers, ",") + "/" + strings.Trim(at.Root, "/")
		a, _ := start(t, c)
		return a
	}
	create := func(a *app.App) error {
		_, err := manage.Ask(t.Context(), a.Backend(), manage.CreateTag{NewRow: segment.NewRow{Tag: "order", Start: 1, Step: 1000}})
		return err
	}
	first := node()
	until(t, "the first cluster has the tag", func() bool { return create(first) == nil })
	until(t, "the first cluster issues", func() bool { status, _ := get(t, first, "/api/segment/get/order"); return status == 200 })

	second := node()
	until(t, "an alarm says whose the fence is", func() bool {
		_, body := get(t, second, "/readyz?mode=segment")
		return strings.Contains(body, "is another cluster's")
	})
	if err := create(second); err == nil || !strings.Contains(err.Error(), "is another cluster's") {
		t.Errorf("to make a tag in the second cluster: %v; want an error that says whose the fence is", err)
	}
	if status, body := get(t, first, "/api/segment/get/order"); status != 200 {
		t.Errorf("the first cluster answers %d %s", status, body)
	}
}
