package client_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/discovery"
)

var errRegistry = errors.New("the registry does not answer")

// TestRegistryFails: a client that has a list goes on with it, whatever becomes of the
// registry.
func TestRegistryFails(t *testing.T) {
	for _, c := range []struct {
		name string
		list []discovery.Node
		err  error
	}{
		{"an error", nil, errRegistry},
		{"an empty list", nil, nil},
		{"nodes without gRPC", []discovery.Node{{ID: "a", Weight: 100, HTTP: "a:1"}}, nil},
		{"nodes that cannot be", []discovery.Node{{ID: "a", Weight: -1, GRPC: "a:1"}, {ID: "b", Weight: 1, GRPC: "b"}}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cl := newCluster(node("a", "", 100), node("b", "", 100))
				leafClient := cl.client(t)
				synctest.Wait()
				list := cl.list
				cl.set(c.list, c.err)
				time.Sleep(time.Hour)
				if got := cl.shares(t, leafClient, 100); got["a"]+got["b"] != 100 || got["a"] == 0 || got["b"] == 0 {
					t.Errorf("requests: %v", got)
				}
				cl.set(list[:1], nil)
				time.Sleep(2 * time.Second)
				if got := cl.shares(t, leafClient, 100); got["a"] != 100 {
					t.Errorf("requests after the registry is back: %v", got)
				}
			})
		})
	}
}

// TestRegistryComesLate: calls wait for the first list, up to their deadline.
func TestRegistryComesLate(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100))
		list := cl.list
		cl.set(nil, errRegistry)
		c := cl.client(t)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := c.Next(ctx, "order"); !errors.Is(err, leaf.ErrNotReady) {
			t.Errorf("without a list: %v", err)
		}
		done := make(chan time.Time, 1)
		go func() {
			calls(t, c, 1)
			done <- time.Now()
		}()
		time.Sleep(time.Second)
		cl.set(list, nil)
		came := time.Now()
		if late := (<-done).Sub(came); late > 400*time.Millisecond {
			t.Errorf("the call succeeded %v after the list was there", late)
		}
	})
}

// inFile is the node file of a client of the cluster "one".
func inFile(path string) client.Option {
	named := client.WithCluster("one")
	file := client.WithNodeFile(path)
	return client.Options(named, file)
}

// TestNodeFile: the last list is on disk, and used if the registry is down at the start.
func TestNodeFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nodes.json")
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "x", 7), node("b", "", 100))
		c := cl.client(t, inFile(file))
		synctest.Wait()
		cl.set(cl.list[:1], nil)
		time.Sleep(3 * time.Second)
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := client.ParseNodes(text, "one")
	if diff := cmp.Diff([]discovery.Node{node("a", "x", 7)}, nodes); diff != "" || err != nil {
		t.Errorf("%v, nodes (-want +got):\n%s", err, diff)
	}
	if left, _ := filepath.Glob(file + "*"); len(left) != 1 {
		t.Errorf("files %v; want one", left)
	}
	for _, useless := range []struct {
		name string
		list []discovery.Node
		err  error
	}{
		{"no list", nil, errRegistry},
		{"an empty list", nil, nil},
		{"nodes that cannot be", []discovery.Node{{ID: "a", Weight: -1, GRPC: "a:1"}, {ID: "b", Weight: 1, HTTP: "b:1"}}, nil},
	} {
		t.Run(useless.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				again := filepath.Join(t.TempDir(), "nodes.json")
				if err := os.WriteFile(again, text, 0o600); err != nil {
					t.Fatal(err)
				}
				cl := newCluster(node("a", "x", 7), node("b", "", 100))
				cl.set(useless.list, useless.err)
				c := cl.client(t, inFile(again))
				if got := cl.shares(t, c, 10); got["a"] != 10 {
					t.Errorf("requests: %v", got)
				}
				if now, err := os.ReadFile(again); err != nil || string(now) != string(text) {
					t.Errorf("the file has become %s, %v", now, err)
				}
				cl.set([]discovery.Node{node("b", "", 100)}, nil)
				time.Sleep(3 * time.Second)
				if got := cl.shares(t, c, 10); got["b"] != 10 {
					t.Errorf("requests after the registry is back: %v", got)
				}
			})
		})
	}
}

// TestNodeFileWhileTheRegistryHangs: a registry that leaves the question open is down,
// too, long before the deadline of the first callers.
func TestNodeFileWhileTheRegistryHangs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nodes.json")
	if err := os.WriteFile(file, []byte(`{"format":2,"cluster":"one","nodes":[{"id":"a","weight":1,"grpc":"a:1"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 1))
		c := newClient(t, mute{}, client.WithLinks(cl.dial), inFile(file))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Next(ctx, "order"); err != nil {
			t.Error(err)
		}
	})
}

// mute is a registry that never answers.
type mute struct{}

// List implements client.Resolver.
func (mute) List(ctx context.Context) ([]discovery.Node, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestNodeFileOfNoUse counts as none, and is replaced.
func TestNodeFileOfNoUse(t *testing.T) {
	for _, c := range []struct{ name, text string }{
		{"empty", ""},
		{"cut off", `{"format":2,"cluster":"one","nodes":[{"id":"a"`},
		{"another format", `{"format":2,"nodes":[{"id":"a","weight":1,"grpc":"a:1"}]}`},
		{"another cluster", `{"format":2,"cluster":"two","nodes":[{"id":"a","weight":1,"grpc":"a:1"}]}`},
		{"no cluster", `{"format":2,"nodes":[{"id":"a","weight":1,"grpc":"a:1"}]}`},
		{"no nodes", `{"format":2,"cluster":"one"}`},
		{"too large", strings.Repeat(" ", 5<<20) + `{"format":2,"cluster":"one","nodes":[{"id":"a","weight":1,"grpc":"a:1"}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "nodes.json")
			if err := os.WriteFile(file, []byte(c.text), 0o600); err != nil {
				t.Fatal(err)
			}
			bubble(t, func(t *testing.T) {
				cl := newCluster(node("a", "", 100))
				list := cl.list
				cl.set(nil, errRegistry)
				leafClient := cl.client(t, inFile(file))
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if _, err := leafClient.Next(ctx, "order"); !errors.Is(err, leaf.ErrNotReady) {
					t.Errorf("%v; want not ready", err)
				}
				cl.set(list, nil)
				calls(t, leafClient, 1)
			})
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if nodes, err := client.ParseNodes(text, "one"); len(nodes) != 1 || err != nil {
				t.Errorf("the file holds %v, %v", nodes, err)
			}
		})
	}
}

func FuzzParseNodes(f *testing.F) {
	f.Add([]byte(`{"format":2,"cluster":"one","nodes":[{"id":"a","zone":"x","weight":100,"grpc":"a:9090"}]}`))
	f.Add([]byte(`{"format":2,"cluster":"one"}`))
	f.Add([]byte(`[]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if nodes, err := client.ParseNodes(text, "one"); err != nil && nodes != nil {
			t.Errorf("%v and %v", nodes, err)
		}
	})
}

// TestOptions: what is outside its limits is refused, by name.
func TestOptions(t *testing.T) {
	good := client.Addresses("127.0.0.1:1")
	for _, c := range []struct {
		field string
		nodes client.Resolver
		opt   client.Option
	}{
		{"nodes", nil, nil},
		{"nodes", client.Addresses(), nil},
		{"address", client.Addresses("a"), nil},
		{"address", client.Addresses("a:1", ":1"), nil},
		{"weight", client.Nodes(node("a", "", 1001)), nil},
		{"address", client.Nodes(discovery.Node{ID: "a", HTTP: "a:1"}), nil},
		{"address", client.DNS("leaf"), nil},
		{"address", client.DNS(":9090"), nil},
		{"WithZone", good, client.WithZone(strings.Repeat("x", 65))},
		{"WithName", good, client.WithName(strings.Repeat("x", 129))},
		{"WithName", good, client.WithName("a ")},
		{"WithName", good, client.WithName("a\nb")},
		{"WithToken", good, client.WithToken(strings.Repeat("x", 5000))},
		{"WithToken", good, client.WithToken("geheimä")},
		{"WithTLS", good, client.WithTLS(nil)},
		{"WithMaxNodes", good, client.WithMaxNodes(0)},
		{"WithMaxNodes", good, client.WithMaxNodes(1001)},
		{"WithNodeFile", good, client.WithNodeFile("nodes.json")},
		{"WithRefresh", good, client.WithRefresh(0)},
		{"WithRefresh", good, client.WithRefresh(2 * time.Hour)},
		{"WithHedgeAfter", good, client.WithHedgeAfter(-1)},
		{"WithHedgeAfter", good, client.WithHedgeAfter(2 * time.Minute)},
		{"WithTimeout", good, client.WithTimeout(0)},
		{"WithTimeout", good, client.WithTimeout(2 * time.Hour)},
		{"WithRetryBudget ratio", good, client.WithRetryBudget(1.1, 1)},
		{"WithRetryBudget ratio", good, client.WithRetryBudget(-0.1, 1)},
		{"WithRetryBudget perSecond", good, client.WithRetryBudget(0, 0)},
		{"WithRuntime", good, client.WithRuntime(nil)},
		{"WithLogger", good, client.WithLogger(nil)},
	} {
		var opts []client.Option
		if c.opt != nil {
			opts = append(opts, c.opt)
		}
		leafClient, err := client.New(c.nodes, opts...)
		if !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), c.field) || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s: %v", c.field, err)
		}
		if leafClient != nil {
			leafClient.Close(t.Context())
		}
	}
}

// TestDNS resolves a name that every machine knows.
func TestDNS(t *testing.T) {
	nodes, err := client.DNS("localhost:9090").List(t.Context())
	if err != nil || len(nodes) == 0 {
		t.Fatalf("%v, %v", nodes, err)
	}
	for _, n := range nodes {
		if n.GRPC != "127.0.0.1:9090" && n.GRPC != "[::1]:9090" || n.Weight != discovery.DefaultWeight {
			t.Errorf("%+v", n)
		}
	}
	if _, err := client.DNS("no-such-name.invalid:1").List(t.Context()); err == nil {
		t.Error("a name that does not exist was found")
	}
}

// TestNoNodeIsKnown: a call that has no node to ask says why: what is wrong is the resolver, its list, or WithCluster.
func TestNoNodeIsKnown(t *testing.T) {
	other := node("a", "", 100)
	other.Cluster = "two"
	for name, tt := range map[string]struct {
		list func(ctx context.Context) ([]discovery.Node, error)
		want string
	}{
		"it fails":        {func(context.Context) ([]discovery.Node, error) { return nil, errRegistry }, errRegistry.Error()},
		"it panics":       {func(context.Context) ([]discovery.Node, error) { panic("an accident") }, "the Resolver panicked: an accident"},
		"it hangs":        {func(ctx context.Context) ([]discovery.Node, error) { <-ctx.Done(); return nil, ctx.Err() }, "the Resolver has not returned"},
		"an empty list":   {func(context.Context) ([]discovery.Node, error) { return nil, nil }, "the list of the Resolver"},
		"another cluster": {func(context.Context) ([]discovery.Node, error) { return []discovery.Node{other}, nil }, `node "a": ` + client.ErrOtherCluster.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cl := newCluster(node("a", "", 100))
				c := newClient(t, resolver(tt.list), client.WithLinks(cl.dial), client.WithCluster("one"))
				for what, ask := range map[string]func(ctx context.Context) error{
					"Next":      func(ctx context.Context) error { return second(c.Next(ctx, "order")) },
					"Sequence":  func(ctx context.Context) error { return second(c.Sequence("chat").Next(ctx, "7")) },
					"WaitReady": c.WaitReady,
				} {
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					if err := ask(ctx); !errors.Is(err, leaf.ErrNotReady) || !strings.Contains(err.Error(), tt.want) {
						t.Errorf("%s: %v, want %q", what, err, tt.want)
					}
				}
			})
		})
	}
}
