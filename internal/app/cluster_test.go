package app_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"testing"

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

	c, err := client.New(client.Addresses(a.GRPCAddr(), b.GRPCAddr(), other.GRPCAddr()), client.WithCluster(id(a)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(t.Context())
	until(t, "the node of the other cluster is refused", func() bool {
		for _, n := range c.Stats().Nodes {
			if n.Address == other.GRPCAddr() && errors.Is(n.Err, client.ErrOtherCluster) {
				return true
			}
		}
		return false
	})
}
