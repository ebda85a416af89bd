package proof_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/internal/test/proxy"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// ownZone is where the clients are.
const ownZone = "a"

// member is a node of a cluster in zones. Clients reach it at an address that stays,
// through front; it reaches its database through back.
type member struct {
	*node

	zone        string
	front, back *proxy.Proxy

	// Of members.mu.
	address string    // of the gRPC server of the present process
	lives   bool      // both modes are ready, whatever the clients think
	found   bool      // every client has seen it usable since it lives
	since   time.Time // since when it lives and every client was told of it; zero: not yet
	settles time.Time // until then a client may ask elsewhere, because a mode refused it before the node lived
}

// members are the nodes of one cluster, and who of them lives: is ready, and every client
// was told where it is. A node that clients hold for broken, since it was, lives too.
type members struct {
	all []*member

	mu        sync.Mutex
	ownBegan  time.Time     // since when a node of the own zone lives and is found; zero: none does
	slowest   time.Duration // from living to found
	addresses map[string]*member
	readers   []*viaFronts // of the clients
}

// newMembers describes and starts two nodes in the clients' zone and one in another.
// They serve both modes.
func newMembers(t *testing.T, store server.Database, flags ...string) *members {
	t.Helper()
	m := &members{addresses: map[string]*member{}}
	for i, zone := range []string{ownZone, ownZone, "b"} {
		b := &member{zone: zone, front: startProxy(t, "127.0.0.1:1"), back: startProxy(t, store.Addr())}
		b.node = newNode(t, zone+[]string{"1", "2", "1"}[i], store.Via(b.back.Addr()).URL())
		b.args = []string{
			"serve", "--data-dir", b.dir, "--store", store.Via(b.back.Addr()).URL(), "--http-addr", "127.0.0.1:0", "--node-zone", zone,
			"--snowflake-address", fmt.Sprintf("10.9.0.%d:8080", i+1), "--snowflake-force-address",
			"--snowflake-lease", "2s", "--snowflake-renew-interval", "500ms", "--snowflake-margin", margin.String(), // claims change hands
		}
		b.args = append(b.args, flags...)
		m.all = append(m.all, b)
		m.begin(t, b)
	}
	return m
}

func startProxy(t *testing.T, target string) *proxy.Proxy {
	t.Helper()
	p, err := proxy.Start(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

var listeningGRPC = regexp.MustCompile(`protocol=gRPC address=(\S+)`)

// begin starts a process of b and returns when it is ready: b lives.
func (m *members) begin(t *testing.T, b *member) {
	t.Helper()
	before := len(b.text())
	b.start(t)
	var address string
	waitFor(t, time.Minute, "gRPC server of "+b.name, func() bool {
		if found := listeningGRPC.FindStringSubmatch(b.text()[before:]); found != nil {
			address = found[1]
		}
		return address != ""
	})
	b.front.Retarget(address)
	if err := b.front.Accept(); err != nil {
		t.Error(err)
	}
	m.mu.Lock()
	m.addresses[address], b.address = b, address
	m.mu.Unlock()
	m.back(t, b)
}

// crash ends b's process at once; its port refuses connections then.
func (m *members) crash(b *member) {
	b.kill()
	b.front.Refuse()
	b.front.Cut()
}

func (n *node) text() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.log.String()
}

// zone returns the nodes of a zone.
func (m *members) zone(name string) (nodes []*member) {
	for _, b := range m.all {
		if b.zone == name {
			nodes = append(nodes, b)
		}
	}
	return nodes
}

// take marks nodes as not living, if one lives beside them, and one in the own zone
// unless zone says that all of that may go.
func (m *members) take(zone bool, gone ...*member) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	others, own := false, false
	for _, b := range m.all {
		switch {
		case slices.Contains(gone, b) && !b.lives:
			return false
		case !slices.Contains(gone, b) && b.lives && m.toldLocked(b):
			others, own = true, own || b.zone == ownZone
		}
	}
	if !others || !own && !zone {
		return false
	}
	for _, b := range gone {
		b.lives, b.found, b.since = false, false, time.Time{}
	}
	m.countOwnLocked()
	return true
}

// toldLocked says whether the directory has told every client of b's process.
func (m *members) toldLocked(b *member) bool {
	for _, r := range m.readers {
		if !r.told[b.address] {
			return false
		}
	}
	return true
}

// back marks b as living, when both modes are ready. Without its registry that takes as long as
// the registry does.
func (m *members) back(t *testing.T, b *member) {
	t.Helper()
	refused := false
	waitFor(t, 2*time.Minute, "readiness of "+b.name, func() bool {
		segment, _ := b.page(t, "/readyz?mode=segment")
		snowflake, _ := b.page(t, "/readyz?mode=snowflake")
		refused = refused || (segment == http.StatusOK) != (snowflake == http.StatusOK)
		return segment == http.StatusOK && snowflake == http.StatusOK
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	b.lives = true
	if refused {
		b.settles = time.Now().Add(findTime)
	}
}

// sight takes in what all clients see.
func (m *members) sight(states [][]client.NodeStats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for _, b := range m.all {
		if !b.lives || b.found || !m.toldLocked(b) {
			continue
		}
		if now.Before(b.settles) {
			continue
		}
		if b.since.IsZero() {
			b.since = now
		}
		seen := 0
		for _, nodes := range states {
			for _, n := range nodes {
				if n.Address == b.front.Addr() && n.State == client.StateUsable {
					seen++
				}
			}
		}
		if b.found = seen == len(states); b.found {
			m.slowest = max(m.slowest, now.Sub(b.since))
		}
	}
	m.countOwnLocked()
}

func (m *members) countOwnLocked() {
	own := false
	for _, b := range m.all {
		own = own || b.zone == ownZone && b.lives && b.found
	}
	switch {
	case !own:
		m.ownBegan = time.Time{}
	case m.ownBegan.IsZero():
		m.ownBegan = time.Now()
	}
}

// ownSince says whether a node of the own zone has lived, and been known, since then.
func (m *members) ownSince(then time.Time) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.ownBegan.IsZero() && !m.ownBegan.After(then)
}

// allFound says whether every node lives and every client knows.
func (m *members) allFound() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.all {
		if !b.lives || !b.found {
			return false
		}
	}
	return true
}

// viaFronts is the directory as one client sees it who reaches each node through its
// proxy.
type viaFronts struct {
	discovery.Directory

	m    *members
	told map[string]bool // of members.mu: the addresses of the last list
}

// List implements client.Resolver.
func (d *viaFronts) List(ctx context.Context) ([]discovery.Node, error) {
	nodes, err := d.Directory.List(ctx)
	if err != nil || len(nodes) == 0 {
		return nil, err // the client goes on with the list that it has
	}
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	known := nodes[:0]
	d.told = map[string]bool{}
	for _, n := range nodes {
		b := d.m.addresses[n.GRPC]
		if b == nil {
			continue // it was published before the test knew of it
		}
		d.told[n.GRPC] = true
		n.GRPC = b.front.Addr()
		known = append(known, n)
	}
	return known, nil
}

// registryOfNodes is where nodes are listed and claim their worker IDs, which a test can
// stop: the flags that make nodes use it, the URL for clients, and its end.
type registryOfNodes struct {
	flags []string
	url   string
	stop  func(hang bool)
	back  func(t *testing.T)
}

// inStore is the registry in the database of the nodes. Only the clients lose it.
func inStore(t *testing.T, store server.Database) registryOfNodes {
	mustLeaf(t, "worker", "init", "--store", store.URL())
	link := startProxy(t, store.Addr())
	return registryOfNodes{
		flags: []string{"--node-discovery", "store"},
		url:   store.Via(link.Addr()).URL(),
		stop: func(hang bool) {
			if hang {
				link.Hold(proxy.Client, proxy.Server)
				return
			}
			link.Refuse()
			link.Cut()
		},
		back: func(t *testing.T) {
			link.Hold()
			if err := link.Accept(); err != nil {
				t.Error(err)
			}
		},
	}
}

// inEtcd is a registry on a server of its own, which everybody loses.
func inEtcd(t *testing.T) registryOfNodes {
	e, killed := server.OwnEtcd(t, 1), false
	servers := strings.Join(e.Servers(), ",")
	url := "etcd://" + servers + "/proof"
	workers := []string{"--snowflake-registry", "etcd", "--snowflake-registry-address", servers}
	mustLeaf(t, append([]string{"worker", "init"}, workers...)...)
	return registryOfNodes{
		flags: append(workers, "--node-discovery", url),
		url:   url,
		stop: func(hang bool) {
			if killed = !hang; killed {
				e.Kill()
				return
			}
			e.Pause()
		},
		back: func(t *testing.T) {
			if !killed {
				e.Resume()
				return
			}
			if err := e.Restart(context.Background()); err != nil {
				t.Error(err)
			}
		},
	}
}
