package proof_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/test/proxy"
	"github.com/leaf-idgen/leaf/test/server"
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
	lives bool
	found bool      // every client has seen it usable since it lives
	since time.Time // when it began to live
}

// members are the nodes of one cluster, and who of them lives: answers requests.
type members struct {
	all []*member

	mu        sync.Mutex
	ownBegan  time.Time     // since when a node of the own zone lives and is found; zero: none does
	slowest   time.Duration // from living to found
	addresses map[string]*member
}

// newMembers describes and starts two nodes in the clients' zone and one in another.
func newMembers(t *testing.T, store server.Database, flags ...string) *members {
	t.Helper()
	m := &members{addresses: map[string]*member{}}
	for i, zone := range []string{ownZone, ownZone, "b"} {
		b := &member{zone: zone, front: startProxy(t, "127.0.0.1:1"), back: startProxy(t, store.Addr())}
		b.node = newNode(t, zone+[]string{"1", "2", "1"}[i], store.Via(b.back.Addr()).URL())
		b.args = []string{
			"serve", "--data-dir", b.dir, "--store", store.Via(b.back.Addr()).URL(), "--http-addr", "127.0.0.1:0", "--node-zone", zone,
			"--no-snowflake-enable", // a crashed node's number returns after its horizon: too long for a short run
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
	b.mu.Lock()
	b.log.Reset()
	b.mu.Unlock()
	b.start(t)
	var address string
	waitFor(t, time.Minute, "gRPC server of "+b.name, func() bool {
		if found := listeningGRPC.FindStringSubmatch(b.text()); found != nil {
			address = found[1]
		}
		return address != ""
	})
	b.front.Retarget(address)
	if err := b.front.Accept(); err != nil {
		t.Error(err)
	}
	m.mu.Lock()
	m.addresses[address] = b
	m.mu.Unlock()
	b.waitReady(t)
	m.back(b)
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

// take marks nodes as not living, if one lives beside them, and one in the own zone
// unless zone says that all of that may go.
func (m *members) take(zone bool, gone ...*member) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	others, own := false, false
	for _, b := range m.all {
		switch up := b.lives && b.found; {
		case slices.Contains(gone, b) && !up:
			return false
		case !slices.Contains(gone, b) && up:
			others, own = true, own || b.zone == ownZone
		}
	}
	if !others || !own && !zone {
		return false
	}
	for _, b := range gone {
		b.lives, b.found = false, false
	}
	m.countOwnLocked()
	return true
}

// back marks b as living.
func (m *members) back(b *member) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b.lives, b.found, b.since = true, false, time.Now()
}

// sight takes in what all clients see.
func (m *members) sight(states [][]client.NodeStats) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	for _, b := range m.all {
		if !b.lives || b.found {
			continue
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

// viaFronts is a directory as clients see it who reach each node through its proxy.
type viaFronts struct {
	discovery.Directory

	m *members
}

// List implements client.Resolver.
func (d viaFronts) List(ctx context.Context) ([]discovery.Node, error) {
	nodes, err := d.Directory.List(ctx)
	if err != nil {
		return nil, err
	}
	d.m.mu.Lock()
	defer d.m.mu.Unlock()
	known := nodes[:0]
	for _, n := range nodes {
		b := d.m.addresses[n.GRPC]
		if b == nil {
			continue // it was published before the test knew of it
		}
		n.GRPC = b.front.Addr()
		known = append(known, n)
	}
	return known, nil
}

// registryOfNodes is a directory that a test can stop: the flags that make nodes use it,
// the URL for clients, and its end.
type registryOfNodes struct {
	flags []string
	url   string
	stop  func(hang bool)
	back  func(t *testing.T)
}

// inStore is the directory in the database of the nodes. Only the clients lose it.
func inStore(t *testing.T, store server.Database) registryOfNodes {
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

// inEtcd is a directory on a server of its own, which everybody loses.
func inEtcd(t *testing.T) registryOfNodes {
	e, killed := server.OwnEtcd(t, 1), false
	url := "etcd://" + strings.Join(e.Servers(), ",") + "/proof"
	return registryOfNodes{
		flags: []string{"--node-discovery", url},
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
