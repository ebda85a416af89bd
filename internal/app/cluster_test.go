package app_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
	clientdirectory "github.com/leaf-idgen/leaf/client/directory"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
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
	db := openFile(t, file)
	run := func(statement string) { t.Helper(); execute(t, db, statement) }
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

// TestStartOnTheDatabaseOfAnotherCluster: a node that has taken ranges of one cluster is
// started with the URL of another one's database. It does not start, nor does a command
// that works in its data directory, and each says how to go on; a new data directory moves
// the node.
func TestStartOnTheDatabaseOfAnotherCluster(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	of := func(node, store string) config.Config {
		c := embedded(filepath.Join(dir, node))
		c.Stores = []string{"sqlite:" + filepath.Join(dir, store)}
		c.Snowflake.Enable = false
		return c
	}
	ids := map[string]string{}
	for node, store := range map[string]string{"a": "one.db", "b": "two.db"} {
		a, stop := start(t, of(node, store))
		if _, err := manage.Ask(t.Context(), a.Backend(), manage.CreateTag{NewRow: segment.NewRow{Tag: "order", Start: 1, Step: 10}}); err != nil {
			t.Fatal(err)
		}
		until(t, "the node remembers its cluster", func() bool {
			content, err := os.ReadFile(filepath.Join(dir, node, "cluster"))
			var known map[string]string
			if err == nil {
				err = json.Unmarshal(content, &known)
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
			ids[store] = known["default"]
			return ids[store] != ""
		})
		stop()
	}

	moved := of("a", "two.db")
	wantRefused := func(what string, err error) {
		t.Helper()
		var other *segment.ClusterError
		if !errors.As(err, &other) || other.Own != ids["one.db"] || other.Found != ids["two.db"] {
			t.Errorf("%s: %v; want that it names %v", what, err, ids)
		}
	}
	a, err := app.New(moved, app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	err = a.Start(t.Context())
	wantRefused("start", err)
	if err == nil || !strings.Contains(err.Error(), "start it with a new data directory") {
		t.Errorf("start: %v; want that it says how to move the node", err)
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	b, done, err := app.Open(t.Context(), moved, app.Options{}, true, app.Stores)
	if err != nil {
		t.Fatal(err)
	}
	_, err = manage.Ask(t.Context(), b, manage.Next{Tag: "order", N: 1})
	wantRefused("a command", err)
	if err := done(); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"fence", "fence-end"} {
		if err := os.Remove(filepath.Join(moved.DataDir, name)); err != nil {
			t.Fatal(err)
		}
	}
	tags, err := app.RebuildFence(t.Context(), moved)
	wantRefused("fence rebuild", err)
	if err == nil || len(tags) > 0 || !errors.Is(err, leaf.ErrConflict) {
		t.Errorf("fence rebuild: %v, %v; want ErrConflict", tags, err)
	}
	if _, err := app.RebuildFence(t.Context(), of("a", "one.db")); err != nil {
		t.Errorf("fence rebuild with the node's own database: %v", err)
	}

	ruled := moved
	ruled.Stores = []string{"x=sqlite:" + filepath.Join(dir, "two.db")}
	ruled.TagRules = []string{"*=x"}
	remembered := filepath.Join(ruled.DataDir, "cluster")
	for name, content := range map[string]string{ // of the file
		"a new tag rule":          fmt.Sprintf(`{"x":%q}`, ids["one.db"]),
		"a store of another name": fmt.Sprintf(`{"default":%q}`, ids["one.db"]),
	} {
		if err := os.WriteFile(remembered, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = app.ApplySchema(t.Context(), ruled, app.Options{}, &app.RuleChange{})
		wantRefused(name, err)
	}

	n, _ := start(t, of("new", "two.db")) // the rule in its database is still its own
	if _, err := manage.Ask(t.Context(), n.Backend(), manage.Next{Tag: "order", N: 1}); err != nil {
		t.Errorf("a new data directory: %v", err)
	}
}

// TestServerInPlaceOfTheEmbeddedDatabase: a node may move from leaf.db to a server with
// the rows, and keeps its data directory.
func TestServerInPlaceOfTheEmbeddedDatabase(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	c := embedded(filepath.Join(dir, "a"))
	c.Snowflake.Enable = false
	_, stop := start(t, c)
	until(t, "the node remembers its cluster", func() bool {
		_, err := os.Stat(filepath.Join(c.DataDir, "cluster"))
		return err == nil
	})
	stop()
	c.Stores = []string{"sqlite:" + filepath.Join(dir, "server.db")}
	other := c
	other.DataDir = filepath.Join(dir, "b")
	start(t, other)
	start(t, c)
}

// TestUnreadableClusterFile is a file that somebody has changed by hand.
func TestUnreadableClusterFile(t *testing.T) {
	t.Parallel()
	c := embedded(filepath.Join(shortDir(t), "a"))
	_, stop := start(t, c)
	stop()
	file := filepath.Join(c.DataDir, "cluster")
	if err := os.WriteFile(file, []byte("one\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := app.New(c, app.Options{}); err == nil || !strings.Contains(err.Error(), "file cluster of data directory "+c.DataDir) {
		t.Errorf("New = %v", err)
	}
	if err := os.WriteFile(file, []byte("null\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, stop = start(t, c)
	until(t, "a file that names no cluster is made anew", func() bool {
		content, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(content), `{"leaf.db":"`)
	})
	stop()
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	start(t, c)
}
