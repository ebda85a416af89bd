package client_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/discovery"
)

// calls makes n calls, one after the other, each of which must get IDs.
func calls(t *testing.T, c *client.Client, n int) {
	t.Helper()
	for range n {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		if _, err := c.Next(ctx, "order"); err != nil {
			t.Errorf("a call failed: %v", err)
		}
		cancel()
	}
}

// shares makes n calls and returns how many each node got.
func (cl *cluster) shares(t *testing.T, c *client.Client, n int) map[string]int {
	t.Helper()
	for _, f := range cl.nodes {
		f.asked()
	}
	calls(t, c, n)
	got := make(map[string]int)
	for id, f := range cl.nodes {
		got[id] = f.asked()
	}
	return got
}

// TestChoice: which nodes are asked, by zone, weight and health.
func TestChoice(t *testing.T) {
	const n = 2000
	down := func(f *fake) { f.down = true }
	draining := func(f *fake) { f.draining = true }
	for _, c := range []struct {
		name   string
		zone   string
		nodes  []discovery.Node
		change map[string]func(*fake)
		want   map[string]float64 // shares; a node that is not named is not asked
	}{
		{
			"no zone, equal weights", "",
			[]discovery.Node{node("a", "x", 100), node("b", "y", 100)},
			nil,
			map[string]float64{"a": 0.5, "b": 0.5},
		},
		{
			"by weight", "",
			[]discovery.Node{node("a", "", 300), node("b", "", 100)},
			nil,
			map[string]float64{"a": 0.75, "b": 0.25},
		},
		{
			"small weights", "",
			[]discovery.Node{node("a", "", 1), node("b", "", 1), node("c", "", 2)},
			nil,
			map[string]float64{"a": 0.25, "b": 0.25, "c": 0.5},
		},
		{
			"own zone only", "x",
			[]discovery.Node{node("a", "x", 1), node("b", "y", 1000), node("c", "", 1000)},
			nil,
			map[string]float64{"a": 1},
		},
		{
			"a zone without nodes", "z",
			[]discovery.Node{node("a", "x", 100), node("b", "y", 100)},
			nil,
			map[string]float64{"a": 0.5, "b": 0.5},
		},
		{
			"own zone fails", "x",
			[]discovery.Node{node("a", "x", 100), node("b", "y", 100), node("c", "y", 100)},
			map[string]func(*fake){"a": down},
			map[string]float64{"b": 0.5, "c": 0.5},
		},
		{
			"own zone drains", "x",
			[]discovery.Node{node("a", "x", 100), node("b", "y", 100)},
			map[string]func(*fake){"a": draining},
			map[string]float64{"b": 1},
		},
		{
			"half of the own zone fails", "x",
			[]discovery.Node{node("a", "x", 100), node("b", "x", 100), node("c", "y", 100)},
			map[string]func(*fake){"a": down},
			map[string]float64{"b": 1},
		},
		{
			"weight 0 comes last", "x",
			[]discovery.Node{node("a", "x", 0), node("b", "y", 1)},
			nil,
			map[string]float64{"b": 1},
		},
		{
			"weight 0 is better than nothing", "x",
			[]discovery.Node{node("a", "y", 0), node("b", "x", 100)},
			map[string]func(*fake){"b": down},
			map[string]float64{"a": 1},
		},
		{
			"all drain: asked anyway", "",
			[]discovery.Node{node("a", "", 100), node("b", "", 100)},
			map[string]func(*fake){"a": draining, "b": draining},
			map[string]float64{"a": 0.5, "b": 0.5},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cl := newCluster(c.nodes...)
				for id, change := range c.change {
					cl.nodes[id].set(change)
				}
				leafClient := cl.client(t, client.WithZone(c.zone))
				synctest.Wait() // the first health checks
				got := cl.shares(t, leafClient, n)
				for id := range cl.nodes {
					if want := c.want[id] * n; float64(got[id]) < want*0.85 || float64(got[id]) > want*1.15 {
						t.Errorf("node %s got %d of %d, want about %.0f", id, got[id], n, want)
					}
				}
			})
		})
	}
}

// TestWeightsChange at run time: traffic shifts with the next list, and a node that left
// the list is not asked any more.
func TestWeightsChange(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100), node("b", "", 100))
		c := cl.client(t)
		synctest.Wait()
		for _, step := range []struct {
			list []discovery.Node
			a    float64
		}{
			{[]discovery.Node{node("a", "", 900), node("b", "", 100)}, 0.9},
			{[]discovery.Node{node("a", "", 0), node("b", "", 100)}, 0},
			{[]discovery.Node{node("a", "", 100)}, 1},
		} {
			cl.set(step.list, nil)
			time.Sleep(2 * time.Second)
			got := cl.shares(t, c, 1000)
			if a := float64(got["a"]) / 1000; a < step.a-0.05 || a > step.a+0.05 {
				t.Errorf("%v: a got %.2f, want %.2f", step.list, a, step.a)
			}
		}
		if s := c.Stats(); len(s.Nodes) != 1 || s.Retries+s.Hedges != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestSlowStart: a node that returns, or is new, gets its share little by little.
func TestSlowStart(t *testing.T) {
	for _, c := range []struct {
		name string
		away func(cl *cluster)
		back func(cl *cluster)
	}{
		{
			"returns",
			func(cl *cluster) { cl.nodes["b"].set(func(f *fake) { f.down = true }) },
			func(cl *cluster) { cl.nodes["b"].set(func(f *fake) { f.down = false }) },
		},
		{
			"is new",
			func(cl *cluster) { cl.set(cl.list[:1], nil) },
			func(cl *cluster) { cl.set(slices.Clone(cl.list[:2]), nil) },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cl := newCluster(node("a", "", 100), node("b", "", 100))
				c.away(cl)
				leafClient := cl.client(t)
				time.Sleep(20 * time.Second)
				if got := cl.shares(t, leafClient, 1000); got["b"] != 0 {
					t.Fatalf("%v while b is away", got)
				}
				c.back(cl)
				for cl.shares(t, leafClient, 100)["b"] == 0 {
					time.Sleep(50 * time.Millisecond)
				}
				for _, want := range []struct{ least, most int }{{50, 200}, {300, 420}, {450, 550}, {450, 550}} {
					got := cl.shares(t, leafClient, 1000)["b"]
					if got < want.least || got > want.most {
						t.Errorf("b got %d of 1000, want %d to %d", got, want.least, want.most)
					}
					time.Sleep(5 * time.Second)
				}
			})
		})
	}
}

// TestLessBusy: of two nodes the one with less to do is asked.
func TestLessBusy(t *testing.T) {
	bubble(t, func(t *testing.T) {
		cl := newCluster(node("a", "", 100), node("b", "", 100))
		c := cl.client(t, client.WithHedgeAfter(time.Minute))
		synctest.Wait()
		a := cl.nodes["a"]
		stuck := make(chan struct{})
		a.set(func(a *fake) {
			a.answer = func(r *client.Request) ([]leaf.Range, error) {
				if r.Tag != "order" {
					<-stuck
				}
				return cl.issuer.NextN(context.Background(), r.Tag, r.Count)
			}
		})
		for i := range 20 { // about half of them hang in a
			go func() {
				if _, err := c.Next(t.Context(), string(rune('a'+i))); err != nil {
					t.Error(err)
				}
			}()
		}
		synctest.Wait()
		if got := cl.shares(t, c, 1000)["a"]; got > 300 {
			t.Errorf("the busy node got %d of 1000", got)
		}
		close(stuck)
		synctest.Wait()
	})
}
