package app_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/client"
	clientdirectory "github.com/leaf-idgen/leaf/client/directory"
	"github.com/leaf-idgen/leaf/internal/app"
)

// TestClusters: the nodes of one database say that they are of one cluster, in /readyz, in
// the directory and to clients, and a client that has met them uses no node of another.
func TestClusters(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	of := func(node, store string) *app.App {
		c := embedded(filepath.Join(dir, node))
		c.Stores = []string{"sqlite:" + filepath.Join(dir, store)}
		c.Snowflake.Enable = false
		c.Node.Discovery = "store"
		a, _ := start(t, c)
		return a
	}
	id := func(a *app.App) (id string) {
		until(t, "the node knows its cluster", func() bool {
			var body struct{ Cluster string }
			_, text := get(t, a, "/readyz")
			if err := json.Unmarshal([]byte(text), &body); err != nil {
				t.Fatal(err)
			}
			id = body.Cluster
			return id != ""
		})
		return id
	}
	a, b, other := of("a", "one.db"), of("b", "one.db"), of("c", "two.db")
	if id(a) != id(b) || id(a) == id(other) {
		t.Errorf("clusters %s, %s and %s", id(a), id(b), id(other))
	}

	directory, err := clientdirectory.Open("sqlite:" + filepath.Join(dir, "one.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer directory.Close()
	until(t, "both entries name the cluster", func() bool {
		nodes, err := directory.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return len(nodes) == 2 && nodes[0].Cluster == id(a) && nodes[1].Cluster == id(a)
	})

	c, err := client.New(client.Addresses(a.AddrOf("grpc"), b.AddrOf("grpc"), other.AddrOf("grpc")), client.WithCluster(id(a)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	until(t, "the node of the other cluster is refused", func() bool {
		for _, n := range c.Stats().Nodes {
			if n.Address == other.AddrOf("grpc") && errors.Is(n.Err, client.ErrOtherCluster) {
				return true
			}
		}
		return false
	})
}

// TestDatabaseOfAnotherCluster: the content of the database becomes that of another cluster
// with higher numbers. The node issues none of them, keeps its cluster, names both IDs, and
// goes on when an operator types what the alarm says for a database that is its own.
func TestDatabaseOfAnotherCluster(t *testing.T) {
	t.Parallel()
	const other = "ffffffffffffffffffffffffffffffff"
	dir := shortDir(t)
	file := filepath.Join(dir, "one.db")
	c := embedded(filepath.Join(dir, "a"))
	c.Stores = []string{"sqlite:" + file}
	c.Snowflake.Enable = false
	c.Segment.SyncInterval = time.Second
	a, _ := start(t, c)
	own := ""
	ready := func() (text string) {
		_, text = get(t, a, "/readyz")
		var body struct{ Cluster string }
		if err := json.Unmarshal([]byte(text), &body); err != nil {
			t.Fatal(err)
		}
		own = body.Cluster
		return text
	}
	until(t, "the node knows its cluster", func() bool { ready(); return own != "" })
	before := own
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	run := func(statement string) {
		if _, err := db.Exec(statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	next := func() (int, int) {
		code, text := get(t, a, "/api/segment/get/order")
		n, _ := strconv.Atoi(text)
		if n > 1_000_000 {
			t.Fatalf("ID %d of the other cluster", n)
		}
		return code, n
	}
	run("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1, 10)")
	until(t, "the tag is served", func() bool { code, _ := next(); return code == 200 })
	run("UPDATE leaf_meta SET value = '" + other + "' WHERE name = 'cluster_id'")
	run("UPDATE leaf_alloc SET max_id = max_id + 1000000 WHERE biz_tag = 'order'")
	until(t, "nothing is left in memory", func() bool { code, _ := next(); return code == 503 })
	text := ready()
	if own != before || !strings.Contains(text, before) || !strings.Contains(text, other) || !strings.Contains(text, "alarm rule (default)") {
		t.Errorf("the node of cluster %s shows %s", before, text)
	}
	run("UPDATE leaf_alloc SET max_id = max_id - 1000000 WHERE biz_tag = 'order'")
	run(regexp.MustCompile(`UPDATE leaf_meta SET value = '\w+' WHERE name = 'cluster_id'`).FindString(text))
	until(t, "the node goes on", func() bool { code, _ := next(); return code == 200 })
}
