package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/internal/server/grpcd"
)

// TestOtherCluster: of two nodes over real sockets that belong to two clusters with the
// same numbers, the client uses one.
func TestOtherCluster(t *testing.T) {
	for _, c := range []struct {
		name string
		ids  [2]string // what the nodes say
		opts []client.Option
		only string // the node that is used; "": the one that answered first
	}{
		{"two clusters", [2]string{"one", "two"}, nil, ""},
		{"the first is named", [2]string{"one", "two"}, []client.Option{client.WithCluster("one")}, "0"},
		{"the second is named", [2]string{"one", "two"}, []client.Option{client.WithCluster("two")}, "1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var nodes []discovery.Node
			for i, id := range c.ids {
				issuer := &counter{}
				address, _ := startNode(t, "127.0.0.1:0", grpcd.Config{
					Access: leaf.Anyone(issuer, issuer), Cluster: func() string { return id }, Logger: slog.New(slog.DiscardHandler),
				})
				nodes = append(nodes, discovery.Node{ID: string(rune('0' + i)), Weight: 100, GRPC: address})
			}
			leafClient := newClient(t, client.Nodes(nodes...), c.opts...)
			var ids ledger
			for range 500 {
				id, err := leafClient.Next(t.Context(), "order")
				if err != nil {
					t.Fatal(err)
				}
				ids.add(t, leaf.Range{Lo: id, Hi: id + 1})
			}
			s := leafClient.Stats()
			refused := 0
			for i, n := range s.Nodes {
				if errors.Is(n.Err, client.ErrOtherCluster) {
					refused++
					if told := strings.Contains(n.Err.Error(), "correct the list of nodes, and set WithCluster"); told != (c.only == "") {
						t.Errorf("node %s: %v", n.ID, n.Err)
					}
					if c.only == n.ID || s.Cluster == c.ids[i] {
						t.Errorf("node %s is refused, %+v", n.ID, s)
					}
				}
			}
			if refused > 1 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// TestOtherClusterInTheList: an entry that names another cluster is not used, whichever
// way the list came.
func TestOtherClusterInTheList(t *testing.T) {
	of := func(id, cluster string) discovery.Node {
		n := node(id, "", 100)
		n.Cluster = cluster
		return n
	}
	for _, c := range []struct {
		name  string
		first []discovery.Node
		then  []discovery.Node
		opts  []client.Option
		want  string // the nodes that are asked at the end
	}{
		{"one list", []discovery.Node{of("a", "one"), of("b", "two"), of("c", "one")}, nil, nil, "ac"},
		{"one that does not know", []discovery.Node{of("a", "one"), of("b", "")}, nil, nil, "ab"},
		{"named", []discovery.Node{of("a", "one"), of("b", "two")}, nil, []client.Option{client.WithCluster("two")}, "b"},
		{"later", []discovery.Node{of("a", "one")}, []discovery.Node{of("b", "two"), of("c", "one")}, nil, "c"},
		{"another cluster only", []discovery.Node{of("a", "one")}, []discovery.Node{of("b", "two")}, nil, "a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cl := newCluster(append(c.first, c.then...)...)
				cl.set(c.first, nil)
				leafClient := cl.client(t, c.opts...)
				synctest.Wait()
				if c.then != nil {
					cl.set(c.then, nil)
					time.Sleep(10 * time.Second)
				}
				got := ""
				asked := cl.shares(t, leafClient, 300)
				for _, id := range []string{"a", "b", "c"} {
					if asked[id] > 0 {
						got += id
					}
				}
				if got != c.want {
					t.Errorf("asked %q, want %q; %+v", got, c.want, leafClient.Stats())
				}
			})
		})
	}
}

// TestAddressOfAnotherCluster: a node of another cluster that takes the address of one
// whose cluster the client knows gives it no ID, also before a health check.
func TestAddressOfAnotherCluster(t *testing.T) {
	t.Parallel()
	startAs := func(address, cluster string) (string, func()) {
		issuer := &counter{}
		return startNode(t, address, grpcd.Config{
			Access: leaf.Anyone(issuer, issuer), Cluster: func() string { return cluster }, Logger: slog.New(slog.DiscardHandler),
		})
	}
	address, stop := startAs("127.0.0.1:0", "one")
	c := newClient(t, client.Addresses(address))
	calls(t, c, 1)
	stop()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var callers sync.WaitGroup
	for i := range 20 {
		callers.Go(func() { // before the other node is there, so that they are the first that it hears of
			for ctx.Err() == nil {
				if id, err := c.Next(ctx, fmt.Sprint("tag ", i)); err == nil {
					t.Errorf("%d of another cluster", id)
					return
				}
			}
		})
	}
	startAs(address, "two")
	callers.Wait()
	if _, err := c.Next(t.Context(), "order"); !errors.Is(err, client.ErrOtherCluster) && !errors.Is(err, leaf.ErrNotReady) {
		t.Errorf("a call afterwards: %v", err)
	}
	if n := c.Stats().Nodes[0]; !errors.Is(n.Err, client.ErrOtherCluster) || !strings.Contains(n.Err.Error(), "may take IDs of two") {
		t.Errorf("%+v", n)
	}
}

// TestNodeLearnsItsCluster: a node that reads the ID of its cluster while streams are open
// gives no ID on them any more, also before a health check: the header that they began
// with names no cluster. A client of that cluster notices nothing.
func TestNodeLearnsItsCluster(t *testing.T) {
	for _, c := range []struct {
		name   string
		client string // the cluster of the client
		served bool
	}{
		{"the client's own", "two", true},
		{"another one", "one", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			issuer := &counter{}
			var id atomic.Value
			id.Store("")
			address, _ := startNode(t, "127.0.0.1:0", grpcd.Config{
				Access: leaf.Anyone(issuer, issuer), Cluster: func() string { return id.Load().(string) }, Logger: slog.New(slog.DiscardHandler),
			})
			leafClient := newClient(t, client.Addresses(address), client.WithCluster(c.client))
			calls(t, leafClient, 1)
			id.Store("two")
			ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond) // less than a health check may take
			defer cancel()
			if !c.served {
				if id, err := leafClient.Next(ctx, "order"); err == nil {
					t.Errorf("%d of another cluster", id)
				}
				return
			}
			calls(t, leafClient, 10)
			if n := leafClient.Stats().Nodes[0]; n.Failures > 0 || n.Ejections > 0 {
				t.Errorf("%+v", n)
			}
		})
	}
}

// TestOldNodeFile: the program was moved to the cluster "two", with the node file of the
// cluster "one", and the resolver answers a moment later than the client waits for it.
func TestOldNodeFile(t *testing.T) {
	bubble(t, func(t *testing.T) {
		of := func(id, cluster string) discovery.Node {
			n := node(id, "", 100)
			n.Cluster = cluster
			return n
		}
		path := filepath.Join(t.TempDir(), "nodes.json")
		both := []discovery.Node{of("a", "one"), of("b", "two")}
		cl := newCluster(both...)
		cl.set(both[:1], nil)
		cl.client(t, inFile(path))
		synctest.Wait()
		time.Sleep(5 * time.Second)
		cl.set(nil, errors.New("slow"))
		c := cl.client(t, client.WithCluster("two"), client.WithNodeFile(path))
		time.Sleep(time.Second)
		cl.set(both[1:], nil)
		time.Sleep(time.Minute)
		if asked := cl.shares(t, c, 100); asked["a"] > 0 || asked["b"] == 0 {
			t.Errorf("asked %v; the resolver lists b only: %+v", asked, c.Stats())
		}
	})
}

// TestOnlyOtherClusters: every call says that all nodes belong to another cluster, not only the first one that asks one.
func TestOnlyOtherClusters(t *testing.T) {
	t.Parallel()
	issuer := &counter{}
	address, _ := startNode(t, "127.0.0.1:0", grpcd.Config{
		Access: leaf.Anyone(issuer, issuer), Cluster: func() string { return "two" }, Logger: slog.New(slog.DiscardHandler),
	})
	c := newClient(t, client.Addresses(address), client.WithCluster("one"), client.WithTimeout(500*time.Millisecond))
	for range 3 {
		if _, err := c.Next(t.Context(), "order"); !errors.Is(err, client.ErrOtherCluster) || !errors.Is(err, leaf.ErrNotReady) {
			t.Error(err)
		}
	}
}
