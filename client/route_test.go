package client_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/leafpb"
)

// routes are what the nodes of a cluster say of the owners of its tags. Every node gives IDs of every
// tag, as nodes do that forward.
type routes struct {
	*cluster

	lock sync.Mutex
	of   map[string]*leafpb.Route // by tag; a tag that is not there is in plain order
}

func routed(c *cluster) *routes {
	r := &routes{cluster: c, of: map[string]*leafpb.Route{}}
	for _, f := range c.nodes {
		f.answer = r.answer
	}
	return r
}

func (r *routes) answer(q *client.Request) ([]leaf.Range, error) {
	r.lock.Lock()
	q.Route = r.of[q.Tag]
	r.lock.Unlock()
	ids, err := r.issuer.NextN(context.Background(), q.Tag, q.Count)
	return ids, err
}

// set says where a tag is issued from now on.
func (r *routes) set(tag, owner string, epoch int64) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.of[tag] = &leafpb.Route{Owner: owner, Epoch: epoch}
}

// asked returns how many requests each node got, and forgets them.
func (r *routes) asked() map[string]int {
	got := map[string]int{}
	for id, f := range r.nodes {
		if n := f.asked(); n > 0 {
			got[id] = n
		}
	}
	return got
}

// call makes calls one after the other, each of which must succeed, and returns how many requests
// each node got.
func (r *routes) call(t *testing.T, c leaf.Issuer, tag string, calls int) map[string]int {
	t.Helper()
	r.asked()
	for range calls {
		if _, err := c.Next(t.Context(), tag); err != nil {
			t.Fatal(err)
		}
	}
	synctest.Wait()
	return r.asked()
}

// TestOwnerIsAsked: calls for a tag in strict order go to its owner, wherever the route comes from.
func TestOwnerIsAsked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := routed(newCluster(node("a", "", 100), node("b", "", 100), node("c", "", 0))) // c is never asked as long as a or b can be
		c := r.client(t)
		synctest.Wait()
		alone := func(step, id string) {
			t.Helper()
			if got := r.call(t, c, "order", 10); got[id] != 10 {
				t.Errorf("%s: requests %v; want all at %s", step, got, id)
			}
		}
		spread := func(step, tag string) {
			t.Helper()
			if got := r.call(t, c, tag, 40); got["a"] == 0 || got["b"] == 0 || got["c"] > 0 {
				t.Errorf("%s: requests %v; want some at a and b", step, got)
			}
		}
		spread("plain", "order")
		r.set("order", "c:1", 5)
		r.call(t, c, "order", 1)
		alone("strict", "c")
		spread("another tag", "user")
		r.set("order", "a:1", 4)
		alone("an older route", "c")
		r.set("order", "b:1", 6)
		r.call(t, c, "order", 1)
		alone("a newer route", "b")
		r.set("order", "", 7)
		r.call(t, c, "order", 1)
		spread("no owner known", "order")
		r.set("order", "a:1", 7)
		r.call(t, c, "order", 1)
		alone("the owner is known again", "a")
		r.set("order", "z:1", 8)
		r.call(t, c, "order", 1)
		spread("an owner that is not in the list", "order")
		delete(r.of, "order")
		r.call(t, c, "order", 1)
		r.set("order", "c:1", 1)
		r.call(t, c, "order", 1)
		alone("strict, plain and strict again", "c")
		r.nodes["c"].set(func(f *fake) { f.down = true })
		r.set("order", "a:1", 0)
		r.call(t, c, "order", 1)
		alone("an older route after the owner has failed", "a")
	})
}

// TestOwnerFails: an owner that gives no IDs is left for other nodes, and asked again when it can.
func TestOwnerFails(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fails func(*fake)
		most  int // requests that it gets in a minute
	}{
		{"down", func(f *fake) { f.down = true }, 0},
		{"not ready", func(f *fake) { f.answer = saying(leaf.ErrNotReady) }, 8}, // the lane shuns it for ever longer
		{"draining", func(f *fake) { f.draining = true }, 40},                   // until the health check says so
		{"frozen", func(f *fake) { f.thawed = make(chan struct{}) }, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := routed(newCluster(node("a", "", 100), node("b", "", 100), node("c", "", 0)))
				c := r.client(t)
				r.set("order", "c:1", 5)
				r.call(t, c, "order", 1)
				time.Sleep(time.Second)
				r.nodes["c"].set(tt.fails)
				got := map[string]int{}
				for range 60 * 20 {
					began := time.Now()
					for id, n := range r.call(t, c, "order", 1) {
						got[id] += n
					}
					if took := time.Since(began); took > 250*time.Millisecond {
						t.Fatalf("a call took %v", took)
					}
					time.Sleep(50 * time.Millisecond)
				}
				if got["c"] > tt.most || got["a"]+got["b"] < 1000 {
					t.Errorf("requests %v; want at most %d at c", got, tt.most)
				}
				if n := c.Stats().Nodes[2].Failures; n > 20 {
					t.Errorf("c failed %d times", n)
				}
				r.nodes["c"].set(func(f *fake) {
					f.down, f.draining, f.answer = false, false, r.answer
					select {
					case <-f.thawed:
					default:
						close(f.thawed)
					}
				})
				time.Sleep(time.Minute)
				r.call(t, c, "order", 1)
				if got := r.call(t, c, "order", 10); got["c"] != 10 {
					t.Errorf("after the end of the trouble %v; want all at c", got)
				}
			})
		})
	}
}

// TestOwnerBeyondTheChosen: an owner that is not among the nodes that the client has chosen gets a link,
// for its tags only, as long as they are used; and there are few of them.
func TestOwnerBeyondTheChosen(t *testing.T) {
	const size = 2
	bubble(t, func(t *testing.T) {
		list := many(20, "x")
		r := routed(newCluster(list...))
		c := r.client(t, client.WithMaxNodes(size))
		synctest.Wait()
		chosen := used(c)
		others := slices.DeleteFunc(many(20, "x"), func(n discovery.Node) bool { return slices.Contains(chosen, n.ID) })
		owner := others[0].ID
		r.set("order", owner+":1", 1)
		r.call(t, c, "order", 1)
		time.Sleep(time.Second)
		if got := r.call(t, c, "order", 10); got[owner] != 10 {
			t.Errorf("requests %v; want all at %s", got, owner)
		}
		if got := r.call(t, c, "user", 100); got[owner] > 0 || len(got) != size {
			t.Errorf("requests for a plain tag %v; want none at %s", got, owner)
		}
		if got := used(c); len(got) != size+1 || !slices.Contains(got, owner) {
			t.Errorf("the client uses %v, want %v and %s", got, chosen, owner)
		}
		r.cluster.set(append(slices.Clone(list), node("new", "", 0)), nil)
		time.Sleep(50 * time.Second)
		if got := r.call(t, c, "order", 10); got[owner] != 10 {
			t.Errorf("with a new list %v; want all at %s", got, owner)
		}
		time.Sleep(50 * time.Second)
		if links := r.links(); links != size+1 {
			t.Errorf("%d links while the tag is used, want %d", links, size+1)
		}
		time.Sleep(20 * time.Second)
		if links := r.links(); links != size {
			t.Errorf("%d links after a minute without a call, want %d", links, size)
		}
		r.call(t, c, "order", 1)
		time.Sleep(time.Second)
		if got := r.call(t, c, "order", 10); got[owner] != 10 {
			t.Errorf("used again: %v; want all at %s", got, owner)
		}
		for i, n := range others {
			tag := fmt.Sprint("tag ", i)
			r.set(tag, n.GRPC, 1)
			r.call(t, c, tag, 1)
		}
		time.Sleep(10 * time.Second)
		if links := r.links(); links != 2*size {
			t.Errorf("%d links for the owners of %d tags, want %d", links, len(others), 2*size)
		}
	})
}
