package client_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/discovery"
)

// used returns the IDs of the nodes that the client uses.
func used(c *client.Client) (ids []string) {
	for _, n := range c.Stats().Nodes {
		ids = append(ids, n.ID)
	}
	return ids
}

// links returns how many links to nodes are open.
func (c *cluster) links() (n int) {
	for _, f := range c.nodes {
		f.set(func(f *fake) { n += f.links })
	}
	return n
}

// checked returns how many health checks came, and forgets them.
func (c *cluster) checked() (n int) {
	for _, f := range c.nodes {
		f.set(func(f *fake) {
			n += f.checks
			f.checks = 0
		})
	}
	return n
}

// polls is a Resolver that notes when it is asked.
type polls struct {
	*cluster

	lock sync.Mutex
	at   []time.Time
}

// List implements client.Resolver.
func (p *polls) List(ctx context.Context) ([]discovery.Node, error) {
	p.lock.Lock()
	p.at = append(p.at, time.Now())
	p.lock.Unlock()
	return p.cluster.List(ctx)
}

// TestManyClients: what fifty clients that start at the same moment cost twenty-five
// nodes and the registry, in good and in bad times.
func TestManyClients(t *testing.T) {
	const clients, nodes, size = 50, 25, 8
	for _, tt := range []struct {
		name   string
		down   int // nodes
		links  int // at most, of a client
		checks int // per second at most, of a client
	}{
		{"all nodes work", 0, size, size},
		{"a third is down", nodes / 3, 2 * size, 2 * size},
		{"all nodes are down", nodes, 2 * size, 2 * size},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				list := many(nodes, "x")
				cl := newCluster(list...)
				for _, n := range list[:tt.down] {
					cl.nodes[n.ID].down = true
				}
				r := &polls{cluster: cl}
				for range clients {
					newClient(t, r, client.WithLinks(cl.dial))
				}
				time.Sleep(20 * time.Second)
				cl.checked()
				r.lock.Lock()
				r.at = nil
				r.lock.Unlock()
				const seconds = 10
				most := 0
				for range seconds {
					time.Sleep(time.Second)
					most = max(most, cl.links())
				}
				if most > clients*tt.links {
					t.Errorf("%d links at a time, want at most %d", most, clients*tt.links)
				}
				if got := cl.checked() / seconds; got > clients*tt.checks || got < clients*size/2 {
					t.Errorf("%d health checks per second, want %d to %d", got, clients*size/2, clients*tt.checks)
				}
				r.lock.Lock()
				defer r.lock.Unlock()
				if got := len(r.at) / seconds; got > clients {
					t.Errorf("%d readings of the list per second, want at most %d", got, clients)
				}
				for i, at := range r.at { // on average there are 3.3 in a tenth of a second
					if i+15 < len(r.at) && r.at[i+15].Sub(at) < 100*time.Millisecond {
						t.Fatalf("15 clients read the list within %v", r.at[i+15].Sub(at))
					}
				}
			})
		})
	}
}

// TestMembersAreReplaced: a node that fails is replaced at once, also while the registry
// hangs, and takes its place again when it works.
func TestMembersAreReplaced(t *testing.T) {
	for _, tt := range []struct {
		name         string
		fail, repair func(*fake)
	}{
		{"killed", func(f *fake) { f.down = true }, func(f *fake) { f.down = false }},
		{"drains", func(f *fake) { f.draining = true }, func(f *fake) { f.draining = false }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cl := newCluster(many(6, "x")...)
				first := true
				c := newClient(t, resolver(func(ctx context.Context) ([]discovery.Node, error) {
					if !first {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					first = false
					return cl.list, nil
				}), client.WithLinks(cl.dial), client.WithMaxNodes(2))
				synctest.Wait()
				before := used(c)
				if len(before) != 2 || c.Stats().Listed != 6 {
					t.Fatalf("%v of %d nodes are used, want 2 of 6", before, c.Stats().Listed)
				}
				for _, id := range before {
					cl.nodes[id].set(tt.fail)
				}
				time.Sleep(2100 * time.Millisecond)
				if now := used(c); len(now) != 4 {
					t.Errorf("%v are used instead of %v", now, before)
				}
				if got := cl.shares(t, c, 100); got[before[0]]+got[before[1]] != 0 {
					t.Errorf("requests: %v; %v fail", got, before)
				}
				for _, id := range before {
					cl.nodes[id].set(tt.repair)
				}
				time.Sleep(50 * time.Second)
				if got := cl.links(); got != 4 {
					t.Errorf("%d links; the two that are not needed stay for a minute", got)
				}
				time.Sleep(20 * time.Second)
				if now := used(c); !slices.Equal(now, before) {
					t.Errorf("%v are used, want %v again", now, before)
				}
				if got := cl.links(); got != 2 {
					t.Errorf("%d links, want 2", got)
				}
			})
		})
	}
}

// resolver is a function that lists nodes.
type resolver func(context.Context) ([]discovery.Node, error)

// List implements client.Resolver.
func (r resolver) List(ctx context.Context) ([]discovery.Node, error) { return r(ctx) }

// TestOneOfManyWorks: the only node of many that works is found, at the start and when it
// comes back, and meanwhile a client has few links.
func TestOneOfManyWorks(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const size = 2
		list := many(50, "x")
		cl := newCluster(list...)
		for _, n := range list[1:] {
			cl.nodes[n.ID].down = true
		}
		c := cl.client(t, client.WithMaxNodes(size))
		calls(t, c, 100)
		one := cl.nodes[list[0].ID]
		one.set(func(f *fake) { f.down = true })
		for range 600 {
			time.Sleep(time.Second)
			if got := cl.links(); got > 2*size {
				t.Fatalf("%d links, want at most %d", got, 2*size)
			}
		}
		one.set(func(f *fake) { f.down = false })
		back := time.Now()
		for c.WaitReady(t.Context()) != nil || len(cl.shares(t, c, 1)) == 0 {
			time.Sleep(time.Second)
		}
		if took := time.Since(back); took > 35*time.Second {
			t.Errorf("found after %v", took)
		}
	})
}

// TestListChanges: with nodes that come and go the client has links to those that it uses
// only, and loses no call.
func TestListChanges(t *testing.T) {
	bubble(t, func(t *testing.T) {
		list := many(40, "x")
		cl := newCluster(list...)
		c := cl.client(t)
		for i := range 30 { // a rolling replacement: ten at a time
			cl.set(slices.Concat(list[i:i+10]), nil)
			time.Sleep(3 * time.Second)
			calls(t, c, 10)
			if s := c.Stats(); s.Listed != 10 || len(s.Nodes) < 8 || len(s.Nodes) > 10 {
				t.Fatalf("%d of %d nodes are used, want 8, or those that came lately", len(s.Nodes), s.Listed)
			}
		}
		time.Sleep(2 * time.Minute)
		if got := cl.links(); got != 8 {
			t.Errorf("%d links, want 8", got)
		}
	})
}

// TestListOfNodesThatFailed: a new list counts although all of its nodes failed a moment ago.
func TestListOfNodesThatFailed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const size = 2
		list := many(20, "x")
		cl := newCluster(list...)
		for _, f := range cl.nodes {
			f.down = true
		}
		c := cl.client(t, client.WithMaxNodes(size))
		time.Sleep(10 * time.Second) // all were tried
		linked := used(c)
		rest := slices.DeleteFunc(slices.Clone(list), func(n discovery.Node) bool { return slices.Contains(linked, n.ID) })
		cl.set(rest[:3], nil)
		time.Sleep(2 * time.Second)
		if now := used(c); len(now) != 3 || c.Stats().Listed != 3 {
			t.Errorf("%v of %d nodes are used, want the three of the list", now, c.Stats().Listed)
		}
	})
}
