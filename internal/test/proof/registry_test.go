package proof_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/leaf-idgen/leaf/internal/test/clock"
	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/internal/test/program"
	"github.com/leaf-idgen/leaf/internal/test/proxy"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// registry is where the nodes of one test claim their worker IDs: a fresh namespace
// on a real server, which every node reaches through a proxy of its own.
type registry struct {
	addr  string                     // host:port of the server
	flags func(addr string) []string // of `leaf serve` and `leaf worker`, for a client of addr
	fixed bool                       // the number belongs to the address
	wipe  func(t *testing.T)         // deletes everything that the nodes wrote
}

// registries are all kinds that several nodes share, by name.
var registries = []struct {
	name string
	open func(t *testing.T) *registry
}{
	{"zookeeper", func(t *testing.T) *registry {
		return named(t, "zookeeper", server.ZooKeeper(t).Servers[0], true, wipeZooKeeper)
	}},
	{"zookeeper-recycle", func(t *testing.T) *registry {
		return named(t, "zookeeper-recycle", server.ZooKeeper(t).Servers[0], false, wipeZooKeeper)
	}},
	{"etcd", func(t *testing.T) *registry { return named(t, "etcd", server.Etcd(t).Servers[0], false, wipeEtcd) }},
	{"MariaDB", func(t *testing.T) *registry { return database(t, server.MariaDB(t)) }},
	{"PostgreSQL", func(t *testing.T) *registry { return database(t, server.Postgres(t)) }},
}

// alone are the kinds that belong to one node, which nobody can take away from it.
var alone = map[string]*registry{
	"sqlite": {flags: func(string) []string { return nil }},
	"static": {fixed: true, flags: func(string) []string { return []string{"--snowflake-registry", "static", "--snowflake-worker-id", "5"} }},
}

// named is a registry whose name keeps tests apart.
func named(t *testing.T, kind, addr string, fixed bool, wipe func(t *testing.T, addr, name string)) *registry {
	t.Helper()
	name := rand.Text()
	return ready(t, &registry{
		addr: addr, fixed: fixed, wipe: func(t *testing.T) { wipe(t, addr, name) },
		flags: func(addr string) []string {
			return []string{"--snowflake-registry", kind, "--snowflake-registry-address", addr, "--snowflake-name", name}
		},
	})
}

func wipeZooKeeper(t *testing.T, addr, name string) {
	t.Helper()
	c, _, err := zk.Connect([]string{addr}, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var remove func(path string) error
	remove = func(path string) error { // nodes write meanwhile, so a folder may fill up again
		for {
			names, _, err := c.Children(path)
			if err != nil {
				return err
			}
			for _, n := range names {
				if err := remove(path + "/" + n); err != nil && !errors.Is(err, zk.ErrNoNode) {
					return err
				}
			}
			if err := c.Delete(path, -1); !errors.Is(err, zk.ErrNotEmpty) {
				return err
			}
		}
	}
	if err := remove("/snowflake/" + name); err != nil && !errors.Is(err, zk.ErrNoNode) {
		t.Fatal(err)
	}
}

func wipeEtcd(t *testing.T, addr, name string) {
	t.Helper()
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, DialTimeout: 10 * time.Second, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if r, err := c.Delete(t.Context(), "/leaf/worker/"+name+"/", clientv3.WithPrefix()); err != nil || r.Deleted == 0 {
		t.Fatalf("wipe: %+v, %v", r, err)
	}
}

func database(t *testing.T, d server.Database) *registry {
	t.Helper()
	mustLeaf(t, "schema", "apply", "--store", d.URL())
	return ready(t, &registry{
		addr: d.Addr(),
		wipe: func(t *testing.T) {
			db := d.Open(t)
			for _, table := range []string{"leaf_worker_namespace", "leaf_worker_bound", "leaf_worker", "leaf_worker_peer"} {
				execute(t, db, "DELETE FROM "+table)
			}
		},
		flags: func(addr string) []string {
			return []string{"--snowflake-registry", "sql", "--snowflake-registry-address", d.Via(addr).URL()}
		},
	})
}

// ready declares the namespace new, so that the first claim need not wait.
func ready(t *testing.T, r *registry) *registry {
	t.Helper()
	var out string
	var err error
	waitFor(t, time.Minute, "registry that can be initialised", func() (ok bool) {
		out, err = leaf(t, append([]string{"worker", "init"}, r.flags(r.addr)...)...)
		return err == nil || !strings.Contains(out, "does not answer") // a busy machine
	})
	if err != nil {
		t.Fatal(out)
	}
	return r
}

// Short bounds: a crashed node's number returns after horizon and margin.
const (
	horizon = 6 * time.Second
	margin  = time.Second
)

// through starts a proxy in front of a server.
func through(t *testing.T, addr string) *proxy.Proxy {
	t.Helper()
	p, err := proxy.Start(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// worker describes a node that serves snowflake mode only.
func (r *registry) worker(t *testing.T, name, address string, flags ...string) *node {
	t.Helper()
	n := newNode(t, name, "")
	var addr string
	if r.addr != "" {
		n.link = through(t, r.addr)
		addr = n.link.Addr()
	}
	n.args = append([]string{
		"serve", "--data-dir", n.dir, "--http-addr", "127.0.0.1:0", "--no-segment-enable",
		"--grpc-addr", "127.0.0.1:0", "--resp-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", // also where --http-addr becomes a fixed port
		"--snowflake-address", address, "--snowflake-force-address",
		"--snowflake-lease", "2s", "--snowflake-renew-interval", "500ms", "--snowflake-horizon", horizon.String(), "--snowflake-margin", margin.String(),
		"--snowflake-peer-timeout", "5s", // a busy machine
	}, r.flags(addr)...)
	n.args = append(n.args, flags...)
	n.mode = "snowflake"
	return n
}

// cutOff takes the registry away from the node: a server that is gone, or, with
// silent, a network that swallows everything. reconnect ends either.
func (n *node) cutOff(silent bool) {
	if silent {
		n.link.Swallow(proxy.Client, proxy.Server)
		return
	}
	n.link.Refuse()
	n.link.Cut()
}

func (n *node) reconnect(t *testing.T) {
	t.Helper()
	n.link.Swallow()
	n.link.Cut()
	if err := n.link.Accept(); err != nil && !strings.Contains(err.Error(), "in use") {
		t.Fatal(err)
	}
}

// signal is sent to the node's process.
func (n *node) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// state returns what /readyz says.
func (n *node) state(t *testing.T) (ready bool, text string) {
	t.Helper()
	status, body := n.page(t, "/readyz")
	return status == http.StatusOK, body
}

// page fetches a path of the node.
func (n *node) page(t *testing.T, path string) (status int, body string) {
	t.Helper()
	c := newClient()
	defer c.CloseIdleConnections()
	resp, err := c.Get(n.address() + path)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	var b strings.Builder
	buf := make([]byte, 4096)
	for {
		k, err := resp.Body.Read(buf)
		b.Write(buf[:k])
		if err != nil {
			break
		}
	}
	return resp.StatusCode, b.String()
}

// tag is what take asks for.
func (n *node) tag() string {
	if n.mode == "segment" {
		return "order"
	}
	return "key"
}

// take asks for count IDs and returns them, or nil and what the node said.
func (n *node) take(t *testing.T, count int) ([]int64, string) {
	t.Helper()
	c := newClient()
	defer c.CloseIdleConnections()
	status, ids, err := get(t.Context(), c, n, n.tag(), count)
	if err != nil {
		return nil, err.Error()
	}
	if status != http.StatusOK {
		_, why := n.page(t, fmt.Sprintf("/api/%s/get/%s?count=%d", n.mode, n.tag(), count))
		_, reasons := n.state(t) // an answer does not say why there is no worker ID
		return nil, fmt.Sprintf("%d: %s; %s", status, why, reasons)
	}
	return ids, ""
}

// The fields of an ID of the layout "leaf".
func workerOf(id int64) int64 { return id >> 12 & 1023 }
func millisOf(id int64) int64 { return id>>22 + 1288834974657 }

// steered is the program built so that a test can move its clock, once for all tests:
// the first build compiles everything anew.
var steered = sync.OnceValues(func() (string, error) {
	dir := filepath.Dir(binary)
	overlay, err := clock.Overlay(dir)
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "leaf-steered")
	if err := program.Build(context.Background(), path, "-overlay", overlay); err != nil {
		return "", fmt.Errorf("with a clock that moves: %w", err)
	}
	return path, nil
})

// steer gives a node a clock of its own.
func (n *node) steer(t *testing.T) *clock.File {
	t.Helper()
	path, err := steered()
	if err != nil {
		t.Fatal(err)
	}
	f, err := clock.Open(filepath.Join(filepath.Dir(n.dir), "clock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		n.kill()
		_ = f.Close()
	})
	n.binary, n.env = path, append(os.Environ(), f.Env())
	return f
}

// each runs f for kinds of registries, side by side: for every kind with LEAF_LONG, else for two. One has
// fixed numbers. The other is one of those with leased numbers, another one from test to test: what each driver
// does is held by its conformance suite.
func each(t *testing.T, f func(t *testing.T, r *registry)) {
	t.Helper()
	const fixed = 1 // so many of registries have fixed numbers
	h := fnv.New32a()
	_, _ = h.Write([]byte(t.Name()))
	leased := fixed + int(h.Sum32()%uint32(len(registries)-fixed))
	for i, kind := range registries {
		if i >= fixed && i != leased && !long.Asked() {
			continue
		}
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			f(t, kind.open(t))
		})
	}
}

// hammerAll runs clients of some nodes until the returned function is called.
func hammerAll(t *testing.T, ids *ledger, nodes ...*node) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for _, n := range nodes {
		for range 2 {
			clients.Go(func() { hammer(ctx, n, "key", ids) })
		}
	}
	return sync.OnceFunc(func() {
		cancel()
		clients.Wait()
	})
}
