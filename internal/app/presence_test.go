package app_test

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	clientdirectory "github.com/leaf-idgen/leaf/client/directory"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// TestDirectoryOfNodes: two nodes find one another, one changes its weight, and one that
// drains is gone from the list while it still serves.
func TestDirectoryOfNodes(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	shared := func(name string) config.Config {
		c := embedded(filepath.Join(dir, name))
		c.Stores = []string{"sqlite:" + filepath.Join(dir, "shared.db")}
		c.Snowflake.Enable = false
		c.Node.Discovery, c.Node.Zone = "store", "zone "+name
		return c
	}
	a, _ := start(t, shared("a"))
	b, stop := start(t, shared("b"))
	list := func() (zones []string) {
		t.Helper()
		all, err := manage.Ask(t.Context(), a.Backend(), manage.ListNodes{})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range all.Nodes {
			zones = append(zones, fmt.Sprintf("%s %d %s %v", n.Zone, n.Weight, n.HTTP, n.Own))
		}
		return zones
	}
	lineA, lineB := fmt.Sprintf("zone a 100 %s true", a.Addr()), fmt.Sprintf("zone b 100 %s false", b.Addr())
	until(t, "both are listed", func() bool { return len(list()) == 2 })
	for _, line := range []string{lineA, lineB} {
		if got := strings.Join(list(), "\n"); !strings.Contains(got, line) {
			t.Errorf("nodes:\n%s\nwant %s", got, line)
		}
	}
	n, err := manage.Ask(t.Context(), b.Backend(), manage.SetWeight{Weight: 5})
	want := manage.Node{Node: discovery.Node{ID: n.ID, Cluster: n.Cluster, Zone: "zone b", Weight: 5, HTTP: b.Addr(), GRPC: b.AddrOf("grpc"), RESP: b.AddrOf("resp")}, Own: true}
	if err != nil || n != want {
		t.Errorf("SetWeight = %+v, %v; want %+v", n, err, want)
	}
	if got := strings.Join(list(), "\n"); !strings.Contains(got, strings.Replace(lineB, "100", "5", 1)) {
		t.Errorf("nodes after SetWeight:\n%s", got)
	}
	if _, err := manage.Ask(t.Context(), b.Backend(), manage.SetWeight{Weight: -1}); !errors.Is(err, leaf.ErrBadRequest) {
		t.Errorf("SetWeight(-1): %v", err)
	}

	if err := manage.Tell(t.Context(), b.Backend(), manage.Drain{Delay: 4 * time.Second}); err != nil {
		t.Fatal(err)
	}
	go stop() // as whoever runs the node does
	until(t, "the node that drains is not listed", func() bool { return cmp.Equal(list(), []string{lineA}) })
	if status, _ := get(t, b, "/healthz"); status != http.StatusOK {
		t.Errorf("the node that drains does not serve: %d", status)
	}
	if _, err := manage.Ask(t.Context(), b.Backend(), manage.SetWeight{Weight: 7}); !errors.Is(err, leaf.ErrConflict) {
		t.Errorf("SetWeight of a node that drains: %v", err)
	}
}

// TestDirectoryForClients: a client finds the node with the text that the node has.
func TestDirectoryForClients(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		url  func(t *testing.T) string
	}{
		{"etcd", func(t *testing.T) string {
			ns := server.Etcd(t)
			return "etcd://" + strings.Join(ns.Servers, ",") + "/" + strings.ReplaceAll(ns.Root, "/", "-")
		}},
		{"zookeeper", func(t *testing.T) string {
			ns := server.ZooKeeper(t)
			return "zookeeper://" + strings.Join(ns.Servers, ",") + ns.Root + "/prod"
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := embedded(shortDir(t))
			c.Node.Discovery = tt.url(t)
			a, stop := start(t, c)
			client, err := clientdirectory.Open(c.Node.Discovery)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = client.Close() })
			found := func(want int) func() bool {
				return func() bool {
					nodes, err := client.List(t.Context())
					return err == nil && len(nodes) == want && (want == 0 || nodes[0].HTTP == a.Addr())
				}
			}
			until(t, "the node is found", found(1))
			stop()
			if !found(0)() {
				t.Error("a node that has stopped is still found")
			}
		})
	}
}

func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); !is(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatal("not in 20 s: " + what)
		}
	}
}

func TestDirectoryOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, discovery string
		stores          []string
		want            string
	}{
		{"a server", "", []string{"mysql://u:hunter2@db:3306/leaf"}, "mysql://u:xxxxx@db:3306/leaf"},
		{"two servers", "", []string{"a=postgres://db1:5432/leaf", "b=postgres://db2:5432/leaf"}, "postgres://db1:5432/leaf"},
		{"a file", "", []string{"sqlite:/x.db"}, ""},
		{"a file that is asked for", "store", []string{"sqlite:/x.db"}, "sqlite:/x.db"},
		{"nothing", "", nil, ""},
		{"off", "off", []string{"mysql://u:hunter2@db:3306/leaf"}, ""},
		{"etcd", "etcds://u:hunter2@a:2379,b:2379/prod", nil, "etcds://u:xxxxx@a:2379,b:2379/prod"},
		{"zookeeper", "zookeeper://a:2181/ids/prod", []string{"mysql://u:hunter2@db:3306/leaf"}, "zookeeper://a:2181/ids/prod"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := embedded(t.TempDir())
			c.Stores, c.Node.Discovery = tt.stores, tt.discovery
			if len(tt.stores) == 2 {
				c.TagRules = []string{"*=a"}
			}
			if got, err := app.DirectoryOf(c); err != nil || got != tt.want {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
}

func TestClientAddress(t *testing.T) {
	t.Parallel()
	list := []app.Interface{
		{Name: "lo", Up: true, Loopback: true, Addrs: addrs("127.0.0.1")},
		{Name: "eth0", Up: true, Addrs: addrs("10.0.0.1")},
		{Name: "eth1", Up: true, Addrs: addrs("2001:db8::1")},
	}
	for _, tt := range []struct {
		name, listening, advertise, prefer string
		want                               string
	}{
		{"loopback", "127.0.0.1:80", "", "", "127.0.0.1:80"},
		{"one address", "10.0.0.7:80", "", "", "10.0.0.7:80"},
		{"all addresses", "0.0.0.0:80", "", "", "10.0.0.1:80"},
		{"all addresses, both families", "[::]:80", "", "", "10.0.0.1:80"},
		{"all addresses, an interface", "[::]:80", "", "eth1", "[2001:db8::1]:80"},
		{"a name", "[::]:80", "leaf.example.org", "", "leaf.example.org:80"},
		{"an address in front of loopback", "127.0.0.1:80", "2001:db8::9", "", "[2001:db8::9]:80"},
		{"an interface that is not there", "[::]:80", "", "eth9", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := embedded("x")
			c.Node.Advertise = tt.advertise
			if tt.prefer != "" {
				c.Snowflake.Interfaces = []string{tt.prefer}
			}
			at, err := net.ResolveTCPAddr("tcp", tt.listening)
			if err != nil {
				t.Fatal(err)
			}
			got, err := app.ClientAddress(c, at, func() ([]app.Interface, error) { return list, nil })
			if got != tt.want || (err != nil) != (tt.want == "") {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
			if err != nil && !strings.Contains(err.Error(), "node.advertise: no address that clients can reach was found among lo (127.0.0.1), eth0") {
				t.Errorf("error %v", err)
			}
		})
	}
}
