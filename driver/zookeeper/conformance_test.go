package zookeeper_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/driver/drivertest"
	"github.com/leaf-idgen/leaf/driver/zookeeper"
	"github.com/leaf-idgen/leaf/internal/test/proxy"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment/fence"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

func TestOriginalConformance(t *testing.T) {
	t.Parallel()
	ns := server.ZooKeeper(t)
	drivertest.RunRegistry(t, func(t *testing.T) drivertest.RegistryTarget {
		p := newPlace(t, ns)
		target := p.target(t, func(t *testing.T, p place) worker.Registry { return p.original(t) })
		target.Garble = func(t *testing.T, number int64) {
			t.Helper()
			for _, name := range p.children(t, p.root()+"/leaf_owner") {
				path := p.root() + "/leaf_owner/" + name
				if strings.Contains(p.get(t, path), `"number":`+strconv.FormatInt(number, 10)+",") {
					p.set(t, path, "garbage")
				}
			}
		}
		// Claim and T are one entry to Java: DeleteClaim has tests of its own.
		target.Overwrite = func(t *testing.T, number int64, nonce string) {
			t.Helper()
			for _, name := range p.children(t, p.root()+"/leaf_owner") {
				path := p.root() + "/leaf_owner/" + name
				if data := p.get(t, path); strings.Contains(data, `"number":`+strconv.FormatInt(number, 10)+",") {
					p.set(t, path, withNonce(data, nonce))
				}
			}
		}
		target.Reset = p.reset
		return target
	})
}

func TestRecycleConformance(t *testing.T) {
	t.Parallel()
	ns := server.ZooKeeper(t)
	drivertest.RunRegistry(t, func(t *testing.T) drivertest.RegistryTarget {
		p := newPlace(t, ns)
		claims := p.root() + "/leaf_pool/claims/"
		target := p.target(t, func(t *testing.T, p place) worker.Registry { return p.recycle(t) })
		target.Garble = func(t *testing.T, number int64) {
			t.Helper()
			p.set(t, p.root()+"/leaf_pool/bounds/"+strconv.FormatInt(number, 10), `{"format":1}`)
		}
		target.DeleteClaim = func(t *testing.T, number int64) {
			t.Helper()
			p.remove(t, claims+strconv.FormatInt(number, 10))
		}
		target.Overwrite = func(t *testing.T, number int64, nonce string) {
			t.Helper()
			path := claims + strconv.FormatInt(number, 10)
			p.set(t, path, withNonce(p.get(t, path), nonce))
		}
		target.Forget = func(t *testing.T) {
			t.Helper()
			for _, folder := range []string{claims, p.root() + "/leaf_pool/bounds/"} {
				for _, name := range p.children(t, strings.TrimSuffix(folder, "/")) {
					p.remove(t, folder+name)
				}
			}
		}
		target.Reset = p.reset
		return target
	})
}

func TestFenceConformance(t *testing.T) {
	t.Parallel()
	ns := server.ZooKeeper(t)
	drivertest.RunClusterFence(t, func(t *testing.T) drivertest.FenceBackend {
		p := newPlace(t, ns)
		return drivertest.FenceBackend{
			Fence: p.fence(t),
			Other: func(t *testing.T) fence.Cluster { return p.fence(t) },
			Wipe:  func(t *testing.T) { p.remove(t, p.cfg.Chroot) },
		}
	})
}

// target returns a registry behind a proxy.
func (p place) target(t *testing.T, open func(*testing.T, place) worker.Registry) drivertest.RegistryTarget {
	t.Helper()
	wire, err := proxy.Start(p.cfg.Servers[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(wire.Close)
	behind := p
	behind.cfg.Servers = []string{wire.Addr()}
	behind.cfg.ConnectTimeout = time.Second
	return drivertest.RegistryTarget{
		Open: func(t *testing.T) worker.Registry { return open(t, behind) },
		Wipe: func(t *testing.T) { p.remove(t, p.root()) },
		Partition: func(*testing.T) func() {
			wire.Swallow(proxy.Client, proxy.Server)
			return func() { wire.Swallow() }
		},
		Pause: func(*testing.T) func() {
			wire.Hold(proxy.Client, proxy.Server)
			return func() { wire.Hold() }
		},
		Lease:       1, // a handle that is closed ends its session
		Fingerprint: javaLayout,
	}
}

// TestClientPanics: a panic of the library is the error of the call.
func TestClientPanics(t *testing.T) {
	t.Parallel()
	o := newPlace(t, server.ZooKeeper(t)).original(t)
	if err := o.Panic(ctx(t)); err == nil || !strings.Contains(err.Error(), "the ZooKeeper client panicked: a broken reply") {
		t.Errorf("%v; want the panic", err)
	}
	if _, err := o.List(ctx(t)); err != nil {
		t.Errorf("List after a panic: %v", err)
	}
}

// reset does what a registry's Info().Reset says.
func (p place) reset(t *testing.T, command string) {
	t.Helper()
	path, ok := strings.CutPrefix(command, "in zkCli.sh, deleteall ")
	if !ok {
		t.Fatalf("command %q", command)
	}
	p.remove(t, path)
}

// withNonce returns the data of a claim with another nonce.
func withNonce(data, nonce string) string {
	before, after, _ := strings.Cut(data, `"nonce":"`)
	_, after, _ = strings.Cut(after, `"`)
	return before + `"nonce":"` + nonce + `"` + after
}

// javaLayout is the fingerprint of Java's layout.
var javaLayout = snowflake.Leaf().Fingerprint()

var _ worker.Records = (*zookeeper.Recycle)(nil)
