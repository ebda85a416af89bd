package proof_test

import (
	"context"
	"crypto/rand"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// TestClusterFence: a table is restored from an older dump. With a cluster fence every
// node refuses it, also one that never served the tag and has a new data directory;
// one command without a number repairs each.
func TestClusterFence(t *testing.T) {
	t.Parallel()
	for kind, open := range map[string]func(testing.TB) server.Namespace{"zookeeper": server.ZooKeeper, "etcd": server.Etcd} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			fence := open(t).Servers[0]
			database := server.MariaDB(t)
			store, db := database.URL(), database.Open(t)
			mustLeaf(t, "schema", "apply", "--store", store)
			mustLeaf(t, "tag", "create", "order", "--step", "100", "--fixed-step", "--store", store)
			link := through(t, fence)
			with := []string{"--segment-cluster-fence", kind + "://" + link.Addr() + "/" + rand.Text()}
			a := newNode(t, "a", store)
			a.args = append(a.args, with...)
			a.start(t)
			w := newWatch(a)
			w.untilServed(t, "order", 20*time.Second)
			execute(t, db, "CREATE TABLE dump AS SELECT * FROM leaf_alloc")
			ctx, stop := context.WithCancel(t.Context())
			var clients sync.WaitGroup
			for range 4 {
				clients.Go(func() { w.ask(ctx, "order", time.Millisecond) })
			}
			waitFor(t, time.Minute, "load", func() bool { return w.outcome("order").ok > 1500 })
			execute(t, db, "DROP TABLE leaf_alloc")
			execute(t, db, "CREATE TABLE leaf_alloc AS SELECT * FROM dump")
			execute(t, db, "ALTER TABLE leaf_alloc ADD PRIMARY KEY (biz_tag)")

			// b has never served the tag, so its own fence knows nothing.
			b := newNode(t, "b", store)
			b.args = append(b.args, with...)
			b.start(t)
			b.waitReady(t)
			if ids, why := b.take(t, 1); ids != nil || !strings.Contains(why, "regress") {
				t.Errorf("a node that never served the tag answers %v %s", ids, why)
			}
			waitFor(t, time.Minute, "refusal of the first node", func() bool { return w.outcome("order").failed > 10 })
			stop()
			clients.Wait()

			mustLeaf(t, "tag", "repair", "order", "--data-dir", b.dir)
			mustLeaf(t, "tag", "repair", "order", "--data-dir", a.dir)
			for range 500 {
				w.untilServed(t, "order", 5*time.Second)
				got, why := b.take(t, 1)
				if got == nil {
					t.Fatalf("after the repair: %s", why)
				}
				w.ids.add("order", got)
			}
			w.ids.check(t)

			// The fence is away: stock is served, then 503; it returns: served again.
			link.Refuse()
			link.Cut()
			waitFor(t, time.Minute, "end of the stock", func() bool {
				got, why := b.take(t, 10)
				w.ids.add("order", got)
				return got == nil && strings.Contains(why, "503")
			})
			if err := link.Accept(); err != nil {
				t.Fatal(err)
			}
			waitFor(t, 30*time.Second, "recovery", func() bool {
				got, _ := b.take(t, 10)
				w.ids.add("order", got)
				return got != nil
			})
			w.ids.check(t)
			t.Logf("%d IDs, all distinct", w.ids.len())
		})
	}
}
