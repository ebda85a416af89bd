package app_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	clientdirectory "github.com/leaf-idgen/leaf/client/directory"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
)

// inEtcd is the configuration of a node whose store is in etcd, in a place of its own.
func inEtcd(t *testing.T) config.Config {
	t.Helper()
	ns := server.Etcd(t)
	c := embedded(shortDir(t))
	c.Stores = []string{"etcd://" + strings.Join(ns.Servers, ",") + "/" + strings.ReplaceAll(ns.Root, "/", "-")}
	return c
}

func take(t *testing.T, a *app.App, n int) []leaf.Range {
	t.Helper()
	issued, err := manage.Ask(t.Context(), a.Backend(), manage.Next{Tag: "order", N: n})
	if err != nil {
		t.Fatal(err)
	}
	return issued.Ranges
}

// TestNodesInEtcd: two nodes share a tag, and are restarted under load. All IDs are distinct, and a
// clean stop returns what was not used.
func TestNodesInEtcd(t *testing.T) {
	t.Parallel()
	c := inEtcd(t)
	if report, err := app.ApplySchema(t.Context(), c, app.Options{}, nil); err != nil || len(report) != 1 || !strings.Contains(report[0], "nothing to create") {
		t.Fatalf("leaf schema apply: %q, %v", report, err)
	}
	var ranges []leaf.Range
	for life := range 2 {
		var mu sync.Mutex
		var nodes sync.WaitGroup
		for node := range 2 {
			own := c
			if node > 0 {
				own.DataDir = shortDir(t)
			}
			a, stop := start(t, own)
			if life == 0 && node == 0 {
				if _, err := manage.Ask(t.Context(), a.Backend(), manage.CreateTag{NewRow: segment.NewRow{Tag: "order", Start: 1, Step: 10}}); err != nil {
					t.Fatal(err)
				}
			}
			nodes.Go(func() {
				for range 30 {
					got := take(t, a, 7)
					mu.Lock()
					ranges = append(ranges, got...)
					mu.Unlock()
				}
				stop()
			})
		}
		nodes.Wait()
	}
	slices.SortFunc(ranges, func(x, y leaf.Range) int { return int(x.Lo - y.Lo) })
	for i := range ranges[1:] {
		if ranges[i].Hi > ranges[i+1].Lo {
			t.Errorf("ranges %v and %v overlap", ranges[i], ranges[i+1])
		}
	}
	a, _ := start(t, c)
	tag, err := manage.Ask(t.Context(), a.Backend(), manage.GetTag{Name: "order"})
	if last := ranges[len(ranges)-1].Hi; err != nil || tag.MaxID < last {
		t.Errorf("the row is %+v, %v, and the last ID was %d", tag, err, last-1)
	}
}

// TestManageEtcd: what is kept beside the tags, and what is for databases of SQL only.
func TestManageEtcd(t *testing.T) {
	t.Parallel()
	c := inEtcd(t)
	a, stop := start(t, c)
	b, ctx := a.Backend(), t.Context()
	if _, err := manage.Ask(ctx, b, manage.CreateTag{NewRow: segment.NewRow{Tag: "order", Start: 1, Step: 10}}); err != nil {
		t.Fatal(err)
	}
	blocked := true
	if _, err := manage.Ask(ctx, b, manage.SetTagLimit{Name: "order", LimitChange: manage.LimitChange{Blocked: &blocked}}); err != nil {
		t.Error(err)
	}
	if status, body := get(t, a, "/api/segment/get/order"); status != 403 {
		t.Errorf("a blocked tag: %d %s", status, body)
	}
	stop()
	late, err := clientdirectory.Open(c.Stores[0]) // clients find the nodes by the URL of the store
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = late.Close() })
	c.Node.Discovery = config.DiscoveryStore
	a, stop = start(t, c)
	until(t, "the node is found", func() bool {
		nodes, err := late.List(ctx)
		return err == nil && len(nodes) == 1 && nodes[0].HTTP == a.Addr()
	})
	stop()

	rule := &app.RuleChange{}
	if _, err := app.ApplySchema(context.Background(), c, app.Options{}, rule); !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "in etcd") {
		t.Errorf("schema apply --accept-rule: %v; want a conflict that says why", err)
	}
	if text, err := app.Schema(c, ""); err == nil || !strings.Contains(err.Error(), "in etcd") {
		t.Errorf("schema print: %q, %v; want an error that says why", text, err)
	}
}
