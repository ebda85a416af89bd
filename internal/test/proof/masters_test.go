package proof_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
)

// TestMasters: a tag lives in MariaDB and in PostgreSQL, with a node near each. MariaDB is killed under load, a third node
// starts without it, and it comes back. No request fails, no ID repeats, and the node near MariaDB takes from it again.
func TestMasters(t *testing.T) {
	t.Parallel()
	east, west := server.OwnMariaDB(t), server.Postgres(t)
	of := []string{"--store", "west=" + west.URL(), "--tag-rule", "orders=east,west*1000"}
	mustLeaf(t, append([]string{"schema", "apply", "--store", "east=" + east.URL()}, of...)...)
	mustLeaf(t, append([]string{"tag", "create", "orders", "--step", "10", "--fixed-step", "--store", "east=" + east.URL()}, of...)...)
	ids := newLedger()
	start := func(name, near string) *watch {
		n := newNode(t, name, "east="+east.URL())
		n.args = append(append(n.args, of...), "--segment-near", near)
		n.start(t)
		w := newWatch(n)
		w.ids = ids
		w.untilServed(t, "orders", 10*time.Second)
		return w
	}
	nodes := []*watch{start("a", "east"), start("b", "west")}

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var clients sync.WaitGroup
	load := func(w *watch) { clients.Go(func() { w.ask(ctx, "orders", 5*time.Millisecond) }) }
	for _, w := range nodes {
		load(w)
	}
	waitFor(t, 10*time.Second, "requests", func() bool { return nodes[0].outcome("orders").ok > 50 })
	east.Kill()
	before := nodes[0].outcome("orders").ok
	third := start("c", "east")
	nodes = append(nodes, third)
	load(third)
	waitFor(t, 10*time.Second, "requests without MariaDB", func() bool {
		return nodes[0].outcome("orders").ok > before+50 && third.outcome("orders").ok > 50
	})
	if err := east.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	division := segment.Masters{Block: 1000, Stores: []int{0, 1}}
	for _, w := range []*watch{nodes[0], third} {
		waitFor(t, 10*time.Second, "an ID of MariaDB", func() bool {
			_, got, err := get(t.Context(), w.c, w.n, "orders", 1)
			w.ids.add("orders", got)
			if err != nil || len(got) == 0 {
				return false
			}
			part, _ := division.Of(got[0])
			return part == 0
		})
	}
	stop()
	clients.Wait()
	for _, w := range nodes {
		if o := w.outcome("orders"); o.failed+o.other > 0 {
			t.Errorf("node %s: %+v; want no failure", w.n.name, o)
		}
	}
	ids.check(t)
}
