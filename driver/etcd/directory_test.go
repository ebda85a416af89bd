package etcd_test

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/driver/drivertest"
	"github.com/leaf-idgen/leaf/driver/etcd"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// directory returns a directory that is closed at the end of the test.
func (p *place) directory(t *testing.T) *etcd.Directory {
	t.Helper()
	d, err := etcd.NewDirectory(p.config())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func TestDirectoryConformance(t *testing.T) {
	ns := server.Etcd(t)
	var places atomic.Int64
	drivertest.RunDirectory(t, func(t *testing.T) drivertest.DirectoryBackend {
		p := newPlace(t, ns.Servers, fmt.Sprintf("%s/node/%d", ns.Root, places.Add(1)))
		return drivertest.DirectoryBackend{
			Directory: p.directory(t),
			Other:     func(t *testing.T) discovery.Directory { return p.directory(t) },
			Plant:     func(t *testing.T, id, text string) { p.put(t, p.prefix+"/"+id, text) },
			Block:     func(*testing.T) func() { return p.partition() },
		}
	})
}

// TestDirectoryKeys: nothing is below the prefix but one leased key for each node, and a
// neighbour whose name begins the same is another directory.
func TestDirectoryKeys(t *testing.T) {
	ns := server.Etcd(t)
	p, neighbour := newPlace(t, ns.Servers, ns.Root+"/a"), newPlace(t, ns.Servers, ns.Root+"/ab")
	n := discovery.Node{ID: "n1", Weight: 1, HTTP: "10.0.0.1:8080"}
	for range 3 {
		if err := p.directory(t).Put(short(t), n, time.Minute); err != nil {
			t.Fatal(err)
		}
	}
	leased, kept := p.keys(t, true), p.keys(t, false)
	if fmt.Sprint(leased) != "[/n1]" || len(kept) != 0 {
		t.Errorf("keys %q on a lease and %q on none; want /n1 on a lease", leased, kept)
	}
	if got, err := neighbour.directory(t).List(short(t)); err != nil || len(got) != 0 {
		t.Errorf("List of a neighbour = %+v, %v", got, err)
	}
}

func TestParseURL(t *testing.T) {
	for _, tt := range []struct {
		text string
		want etcd.Config
	}{
		{"etcd://a:2379/prod", etcd.Config{Endpoints: []string{"http://a:2379"}, Prefix: "/leaf/node/prod"}},
		{"etcds://a:1,[::1]:2/eu west", etcd.Config{Endpoints: []string{"https://a:1", "https://[::1]:2"}, Prefix: "/leaf/node/eu west"}},
		{"etcd://leaf:p%40ss@a:1,b:2/n", etcd.Config{Endpoints: []string{"http://a:1", "http://b:2"}, Username: "leaf", Password: "p@ss", Prefix: "/leaf/node/n"}},
	} {
		got, err := etcd.ParseURL(tt.text, "/leaf/node")
		tt.want.DialTimeout, tt.want.Lease = 2*time.Second, 15*time.Second
		if diff := gocmp.Diff(tt.want, got); err != nil || diff != "" {
			t.Errorf("ParseURL(%q): %v (-want +got):\n%s", tt.text, err, diff)
		}
	}
	for _, text := range []string{
		"", "etcd", "://", "etcd:///n", "etcd://a:1", "etcd://a:1/", "etcd://a:1/x/n", "etcd://a:1/..", "etcd://a:1/n?x", "etcd://a:1/n#x", "etcd://a/n", "etcd://a:0/n",
		"etcd://a:65536/n", "etcd://a:1,/n", "etcd://:1/n", "http://a:1/n", "etcd://a:1/a\nb", "etcd://a:1/" + strings.Repeat("x", 65), "etcd://u:hunter2@a:x/n", "etcd://hunter2@a:1/n",
		"etcd://u:hunter2%zz@a:1/n",
	} {
		c, err := etcd.ParseURL(text, "/leaf/node")
		if !errors.Is(err, leaf.ErrBadRequest) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("ParseURL(%q) = %+v, %v; want ErrBadRequest without the password", text, c, err)
		}
	}
}
