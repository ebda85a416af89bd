package zookeeper_test

import (
	"context"
	"crypto/rand"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/leaf-idgen/leaf/driver/zookeeper"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/worker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// limit is the deadline of calls that are expected to succeed.
const limit = 30 * time.Second

func ctx(t *testing.T) context.Context {
	t.Helper()
	c, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return c
}

// place is a folder on a server where nobody else writes, and a person with a
// client who writes there past the driver.
type place struct {
	cfg zookeeper.Config
	zk  *zk.Conn
}

// watch is how long the tests' registries watch a child before they adopt it.
const watch = 150 * time.Millisecond

func newPlace(t *testing.T, ns server.Namespace) place {
	t.Helper()
	client, events, err := zk.Connect(ns.Servers, 20*time.Second, zk.WithLogger(silent{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		for range events {
		}
	})
	cfg := zookeeper.Config{Servers: ns.Servers, Chroot: ns.Root + "/a", Name: "test"}
	cfg.SetAdoptWatch(watch)
	return place{cfg, client}.elsewhere()
}

// elsewhere returns an empty folder beside this one, with the same client.
func (p place) elsewhere() place {
	p.cfg.Chroot = path.Join(path.Dir(p.cfg.Chroot), strings.ToLower(rand.Text()))
	return p
}

type silent struct{}

func (silent) Printf(string, ...any) {}

// root is the folder of the registries.
func (p place) root() string { return p.cfg.Chroot + "/snowflake/" + p.cfg.Name }

func (p place) get(t *testing.T, path string) string {
	t.Helper()
	data, _, err := p.zk.Get(path)
	if err != nil {
		t.Fatalf("read %s: %v", path, err)
	}
	return string(data)
}

func (p place) set(t *testing.T, path, data string) {
	t.Helper()
	if _, err := p.zk.Set(path, []byte(data), -1); err != nil {
		t.Fatalf("write %s: %v", path, err)
	}
}

// create makes a node and what is above it.
func (p place) create(t *testing.T, path, data string, flags int32) string {
	t.Helper()
	for i := 1; i < len(path); i++ {
		if path[i] == '/' {
			if _, err := p.zk.Create(path[:i], nil, 0, zk.WorldACL(zk.PermAll)); err != nil && err != zk.ErrNodeExists { //nolint:errorlint // the client returns it as it is
				t.Fatalf("create %s: %v", path[:i], err)
			}
		}
	}
	made, err := p.zk.Create(path, []byte(data), flags, zk.WorldACL(zk.PermAll))
	if err != nil {
		t.Fatalf("create %s: %v", path, err)
	}
	return made
}

// remove deletes a node with all that is below it.
func (p place) remove(t *testing.T, path string) {
	t.Helper()
	for _, name := range p.children(t, path) {
		p.remove(t, path+"/"+name)
	}
	if err := p.zk.Delete(path, -1); err != nil && err != zk.ErrNoNode { //nolint:errorlint // the client returns it as it is
		t.Fatalf("delete %s: %v", path, err)
	}
}

func (p place) children(t *testing.T, path string) []string {
	t.Helper()
	names, _, err := p.zk.Children(path)
	if err != nil && err != zk.ErrNoNode { //nolint:errorlint // the client returns it as it is
		t.Fatalf("list %s: %v", path, err)
	}
	return names
}

func (p place) original(t *testing.T) *zookeeper.Original {
	t.Helper()
	return opened(t, p.cfg, zookeeper.NewOriginal)
}

func (p place) recycle(t *testing.T) worker.Registry {
	t.Helper()
	return worker.NewPool(opened(t, p.cfg, zookeeper.NewRecycle))
}

func (p place) fence(t *testing.T) *zookeeper.Fence {
	t.Helper()
	return opened(t, p.cfg, zookeeper.NewFence)
}

func opened[T interface{ Close() error }](t *testing.T, cfg zookeeper.Config, open func(zookeeper.Config) (T, error)) T {
	t.Helper()
	r, err := open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func newRecycle(cfg zookeeper.Config) (*zookeeper.Recycle, error) { return zookeeper.NewRecycle(cfg) }

func configOf(addr string) zookeeper.Config {
	return zookeeper.Config{Servers: []string{addr}, Name: "test"}
}
