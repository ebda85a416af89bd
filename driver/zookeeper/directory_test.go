package zookeeper_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/driver/drivertest"
	"github.com/leaf-idgen/leaf/driver/zookeeper"
	"github.com/leaf-idgen/leaf/internal/test/proxy"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

func (p place) directory(t *testing.T) *zookeeper.Directory {
	t.Helper()
	return opened(t, p.cfg, zookeeper.NewDirectory)
}

// nodes is the folder of the directory.
func (p place) nodes() string { return p.cfg.Chroot + "/leaf/node/test" }

func TestDirectoryConformance(t *testing.T) {
	t.Parallel()
	ns := server.ZooKeeper(t)
	drivertest.RunDirectory(t, func(t *testing.T) drivertest.DirectoryBackend {
		p := newPlace(t, ns)
		p.cfg.SessionTimeout = time.Second
		wired, wire := p.behind(t)
		wired.cfg.ConnectTimeout = time.Second
		return drivertest.DirectoryBackend{
			Directory: wired.directory(t),
			Other:     func(t *testing.T) discovery.Directory { return p.directory(t) },
			Plant:     func(t *testing.T, id, text string) { p.create(t, p.nodes()+"/"+id, text, 0) },
			Die:       func(*testing.T) { wire.Refuse(); wire.Cut() },
			Block: func(*testing.T) func() {
				wire.Swallow(proxy.Client, proxy.Server)
				return func() { wire.Swallow() }
			},
			CloseEnds: true,
		}
	})
}

// TestDirectorySessionLost: an entry that went with its session comes back with the next
// Put, and only then.
func TestDirectorySessionLost(t *testing.T) {
	t.Parallel()
	p := newPlace(t, server.ZooKeeper(t))
	p.cfg.SessionTimeout = time.Second
	wired, wire := p.behind(t)
	node, watcher := wired.directory(t), p.directory(t)
	n := discovery.Node{ID: "n1", Weight: 1, HTTP: "10.0.0.1:8080"}
	count := func(want int) func(context.Context) error {
		return func(c context.Context) error {
			got, err := watcher.List(c)
			if err == nil && len(got) != want {
				err = fmt.Errorf("nodes %+v, want %d", got, want)
			}
			return err
		}
	}
	for range 2 {
		until(t, "Put", limit, func(c context.Context) error { return node.Put(c, n, time.Minute) })
		if err := count(1)(ctx(t)); err != nil {
			t.Fatal(err)
		}
		wire.Refuse()
		wire.Cut()
		until(t, "the session expires", limit, count(0))
		if err := wire.Accept(); err != nil {
			t.Fatal(err)
		}
		if _, err := node.List(ctx(t)); err != nil { // in a new session
			t.Fatal(err)
		}
		if err := count(0)(ctx(t)); err != nil {
			t.Error(err)
		}
	}
}

// TestDirectoryRenewal: a Put that changes nothing writes nothing.
func TestDirectoryRenewal(t *testing.T) {
	t.Parallel()
	p := newPlace(t, server.ZooKeeper(t))
	d := p.directory(t)
	n := discovery.Node{ID: "n1", Weight: 1, HTTP: "10.0.0.1:8080"}
	written := func() int64 {
		t.Helper()
		if err := d.Put(ctx(t), n, time.Minute); err != nil {
			t.Fatal(err)
		}
		_, stat, err := p.zk.Get(p.nodes() + "/n1")
		if err != nil || stat.EphemeralOwner == 0 {
			t.Fatalf("%+v, %v; want an ephemeral node", stat, err)
		}
		return stat.Mzxid
	}
	first := written()
	if again := written(); again != first {
		t.Errorf("the same entry was written again")
	}
	n.Weight++
	if changed := written(); changed == first {
		t.Errorf("another entry was not written")
	}
}

func TestParseURL(t *testing.T) {
	for _, tt := range []struct {
		text string
		want zookeeper.Config
	}{
		{"zookeeper://a:2181/prod", zookeeper.Config{Servers: []string{"a:2181"}, Name: "prod"}},
		{"zookeeper://a:1,[::1]:2/ids/eu/leaf", zookeeper.Config{Servers: []string{"a:1", "[::1]:2"}, Chroot: "/ids/eu", Name: "leaf"}},
	} {
		got, err := zookeeper.ParseURL(tt.text)
		if diff := gocmp.Diff(tt.want, got, gocmp.AllowUnexported(zookeeper.Config{})); err != nil || diff != "" {
			t.Errorf("ParseURL(%q): %v (-want +got):\n%s", tt.text, err, diff)
		}
	}
	for _, text := range []string{
		"", "zookeeper", "zookeeper:///n", "zookeeper://a:1", "zookeeper://a:1/", "zookeeper://a:1/x/", "zookeeper://a:1//n", "zookeeper://a:1/../n", "zookeeper://a:1/n?x",
		"zookeeper://a:1/n#x", "zookeeper://a/n", "zookeeper://a:0/n", "zookeeper://a:65536/n", "zookeeper://a:1,/n", "zookeeper://:1/n", "etcd://a:1/n", "zookeeper://a:1/a\nb",
		"zookeeper://a:1/" + strings.Repeat("x", 65), "zookeeper://u:hunter2@a:1/n",
	} {
		c, err := zookeeper.ParseURL(text)
		if !errors.Is(err, leaf.ErrBadRequest) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("ParseURL(%q) = %+v, %v; want ErrBadRequest without the password", text, c, err)
		}
	}
}
