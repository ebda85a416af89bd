package server_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// ensembles are the kinds that the tests of this file run on.
var ensembles = map[string]struct {
	own   func(testing.TB, int) *server.Ensemble
	store store
}{
	"zookeeper": {server.OwnZooKeeper, zooKeeperStore},
	"etcd":      {server.OwnEtcd, etcdStore},
}

func TestEnsembleOfOne(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	for kind, tt := range ensembles {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			e := tt.own(t, 1)
			if e.Len() != 1 || !slices.Equal(e.Servers(), []string{e.Addr(0)}) {
				t.Errorf("Len, Servers = %d, %q; want one node", e.Len(), e.Servers())
			}
			if i, err := e.Leader(t.Context()); i != 0 || err != nil {
				t.Errorf("Leader() = %d, %v; want 0", i, err)
			}
			for n, end := range []struct {
				name string
				f    func(...int)
			}{{"Kill", e.Kill}, {"Stop", e.Stop}, {"none", nil}} {
				mustPut(t, tt.store, e.Servers(), fmt.Sprintf("/survives-%d", n))
				if end.f != nil {
					end.f()
					if dials(e.Addr(0)) {
						t.Errorf("after %s: %s still accepts", end.name, e.Addr(0))
					}
				}
				if err := e.Restart(t.Context()); err != nil {
					t.Fatalf("Restart after %s: %v", end.name, err)
				}
				if got := mustCount(t, tt.store, e.Servers(), "/survives-"); got != n+1 {
					t.Errorf("after %s: %d keys, want %d", end.name, got, n+1)
				}
			}
			e.Pause() // Close at the end of the test must not wait for it
		})
	}
}

func TestEnsembleOfThree(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	for kind, tt := range ensembles {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			e := tt.own(t, 3)
			put := func(key string) { t.Helper(); mustPut(t, tt.store, e.Servers(), key) }
			put("/before")
			first := leader(t, e)

			e.Kill(first)
			second := leader(t, e)
			if second == first {
				t.Fatalf("node %d leads, and it was killed", first)
			}
			put("/while one is down")
			if err := e.Restart(t.Context(), first); err != nil {
				t.Fatal(err)
			}

			e.Pause(second)
			third := leader(t, e)
			if third == second {
				t.Fatalf("node %d leads, and it is frozen", second)
			}
			put("/while one is frozen")
			e.Resume(second)
			if err := e.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}

			e.Kill(0, 1)
			waitUntil(t, "one node of three does not serve", func() bool {
				ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
				defer cancel()
				return e.Wait(ctx, 2) != nil
			})
			if err := e.Restart(t.Context(), 0, 1); err != nil {
				t.Fatal(err)
			}
			if err := e.Wait(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := mustCount(t, tt.store, e.Servers(), "/"); got != 3 {
				t.Errorf("%d keys, want 3", got)
			}
		})
	}
}

func leader(t *testing.T, e *server.Ensemble) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	i, err := e.Leader(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func TestEnsembleNeedsANode(t *testing.T) {
	t.Parallel()
	if _, err := server.StartZooKeeper(t.Context(), t.TempDir(), 0); err == nil || !strings.Contains(err.Error(), "0 nodes") {
		t.Errorf("StartZooKeeper with 0 nodes: %v", err)
	}
}

// TestRootsAreFreshAndRemoved runs on one server of its own, which it passes on
// in the environment as withservers does.
func TestRootsAreFreshAndRemoved(t *testing.T) {
	for _, tt := range []struct {
		kind, variable string
		fresh          func(testing.TB) server.Namespace
		root           int // what is there of a root that is empty
	}{
		{"zookeeper", "LEAF_TEST_ZOOKEEPER", server.ZooKeeper, 1},
		{"etcd", "LEAF_TEST_ETCD", server.Etcd, 0},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			e := ensembles[tt.kind].own(t, 1)
			t.Setenv(tt.variable, strings.Join(e.Servers(), ","))
			s := ensembles[tt.kind].store
			count := func(prefix string) int { t.Helper(); return mustCount(t, s, e.Servers(), prefix) }
			t.Run("two tests", func(t *testing.T) {
				a, b := tt.fresh(t), tt.fresh(t)
				if !slices.Equal(a.Servers, e.Servers()) || a.Root == b.Root {
					t.Errorf("%v and %v: want two roots on %v", a, b, e)
				}
				if got := count("/leaf-test-"); got != 2*tt.root {
					t.Errorf("%d keys of two new roots, want %d", got, 2*tt.root)
				}
				keys := []string{b.Root + "/same", a.Root + "/same", a.Root + "/same/deeper"}
				for n := range 600 { // more than one batch of the removal
					keys = append(keys, fmt.Sprintf("%s/%d", a.Root, n))
				}
				mustPut(t, s, e.Servers(), keys...)
				if got := count(b.Root); got != tt.root+1 {
					t.Errorf("%d keys in the second root, want %d", got, tt.root+1)
				}
			})
			if got := count("/leaf-test-"); got != 0 {
				t.Errorf("%d keys left, want 0", got)
			}
		})
	}
}

func TestRegistryVersion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		kind    string
		fresh   func(testing.TB) server.Namespace
		version func(context.Context, string) (string, error)
		other   func(context.Context, string) (string, error)
	}{
		{"zookeeper", server.ZooKeeper, server.ZooKeeperVersion, server.EtcdVersion},
		{"etcd", server.Etcd, server.EtcdVersion, server.ZooKeeperVersion},
	} {
		t.Run(tt.kind, func(t *testing.T) {
			t.Parallel()
			addr := tt.fresh(t).Servers[0]
			if v, err := tt.version(t.Context(), addr); err != nil || !strings.HasPrefix(v, "3.") {
				t.Errorf("version %q, %v; want 3.…", v, err)
			}
			if _, err := tt.version(t.Context(), "127.0.0.1:1,"+addr); err != nil {
				t.Errorf("with the first server down: %v", err)
			}
			if v, err := tt.other(t.Context(), addr); err == nil {
				t.Errorf("asked as the other kind it has version %q", v)
			}
			for _, text := range []string{"", "localhost", addr + ",", "http://" + addr, addr + "/root"} {
				if _, err := tt.version(t.Context(), text); err == nil {
					t.Errorf("%q is accepted", text)
				}
			}
		})
	}
}
