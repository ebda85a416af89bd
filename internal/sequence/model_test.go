package sequence_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/sequence"
)

// What two nodes answer in any order of calls, takeovers, lost replies and evictions is held against one
// number an entity: the smallest that may come.
func TestModel(t *testing.T) {
	names := []string{"a", "b"}
	entities := append(inSection(3, 12), inSection(4, 4)...)
	rapid.Check(t, func(t *rapid.T) {
		c := newCluster()
		split := rapid.Bool().Draw(t, "split")
		c.split = split
		nodes := map[string]*sequence.Positions{}
		for _, name := range names {
			// The room of a section is for 1 to 8 of its 12 entities.
			n, err := sequence.New(blocks{c, name, &term{of: c, node: name}}, sequence.Config{
				Step: rapid.Int64Range(1, 20).Draw(t, "step"), MaxResident: sequence.Sections * rapid.IntRange(1, 8).Draw(t, "room"),
			})
			if err != nil {
				t.Fatal(err)
			}
			nodes[name] = n
		}
		owner := ""
		least := map[sequence.Entity]int64{} // the smallest number that may come next
		given := map[sequence.Entity]map[int64]bool{}
		var lose atomic.Bool
		skipped := 0
		c.intercept(func(_ string, _ int, do func() sequence.Block) (sequence.Block, error) {
			b := do()
			if lose.Swap(false) {
				return sequence.Block{}, errDown
			}
			return b, nil
		})
		node := func(t *rapid.T) string { return rapid.SampledFrom(names).Draw(t, "node") }
		some := func(t *rapid.T) sequence.Entity { return rapid.SampledFrom(entities).Draw(t, "entity") }
		check := func(t *rapid.T, name string, e sequence.Entity, r leaf.Range, next int64, err error) {
			switch {
			case err != nil && (errors.Is(err, errDown) || !split && name != owner && errors.Is(err, leaf.ErrNotReady)):
				return
			case err != nil:
				t.Fatalf("%s: entity %v: %v", name, e, err)
			case !split && name != owner:
				t.Fatalf("%s does not own the sections, and gave %v of entity %v", name, r, e)
			case !split && max(r.Lo, next-r.Len()) < least[e]:
				t.Fatalf("%s: entity %v got %v, next %d, and at least %d may come", name, e, r, next, least[e])
			}
			least[e] = next
			if given[e] == nil {
				given[e] = map[int64]bool{}
			}
			for id := range leaf.IDs([]leaf.Range{r}) {
				if given[e][id] {
					t.Fatalf("%s: entity %v got %d twice", name, e, id)
				}
				given[e][id] = true
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				name, e := node(t), some(t)
				r, err := nodes[name].NextN(context.Background(), e, rapid.IntRange(1, 30).Draw(t, "n"))
				check(t, name, e, r, r.Hi, err)
			},
			"batch": func(t *rapid.T) {
				name := node(t)
				requests := make([]sequence.Request, rapid.IntRange(1, 20).Draw(t, "requests"))
				for i := range requests {
					requests[i] = sequence.Request{Entity: some(t), Count: rapid.IntRange(1, 5).Draw(t, "n")}
				}
				results, err := nodes[name].NextEach(context.Background(), requests)
				if err != nil {
					t.Fatal(err)
				}
				before := maps.Clone(least)
				for i, r := range results { // the requests count as calls at the same time
					e := requests[i].Entity
					now := least[e]
					least[e] = before[e]
					check(t, name, e, r.Range, r.Range.Hi, r.Err)
					least[e] = max(least[e], now)
				}
			},
			"skip": func(t *rapid.T) {
				name, e := node(t), some(t)
				to := least[e] + rapid.Int64Range(-5, 50).Draw(t, "by")
				if skipped++; to < 0 || skipped > 20 {
					t.Skip()
				}
				next, err := nodes[name].SkipTo(context.Background(), e, to)
				if err == nil && next < to {
					t.Fatalf("skip to %d: %d", to, next)
				}
				check(t, name, e, leaf.Range{}, next, err)
			},
			"peek": func(t *rapid.T) {
				name, e := node(t), some(t)
				next, err := nodes[name].Peek(context.Background(), e)
				check(t, name, e, leaf.Range{}, next, err)
			},
			"takeover": func(t *rapid.T) {
				if owner = node(t); owner != "" {
					c.own(owner)
				}
			},
			"row moves":    func(*rapid.T) { c.move(3, 7) },
			"lose a reply": func(*rapid.T) { lose.Store(true) },
			"status":       func(t *rapid.T) { nodes[node(t)].Status() },
		})
	})
}

// Callers on two nodes, while the owner changes: each call is held against what was answered before it began.
func TestCallersBesideTakeovers(t *testing.T) {
	c := newCluster()
	c.own("a")
	nodes := []*sequence.Positions{c.node(t, "a", sequence.Config{Step: 10, MaxResident: 3 * sequence.Sections}), c.node(t, "b", sequence.Config{Step: 10, MaxResident: 3 * sequence.Sections})}
	entities := inSection(3, 6)
	done := make([]atomic.Int64, len(entities)) // the highest number that was answered
	var given sync.Map
	var answers atomic.Int64
	var callers, changes sync.WaitGroup
	stop := make(chan struct{})
	changes.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				at := answers.Load()
				c.own([]string{"b", "a"}[i%2])
				for answers.Load() < at+20 && len(stop) == 0 {
					select {
					case <-stop:
						return
					default:
						_, _ = nodes[i%2].Peek(context.Background(), entities[0])
					}
				}
			}
		}
	})
	answer := func(k int, floor int64, r leaf.Range) {
		if r.Lo <= floor {
			t.Errorf("entity %v got %v after %d", entities[k], r, floor)
		}
		for id := range leaf.IDs([]leaf.Range{r}) {
			if _, twice := given.LoadOrStore([2]int64{int64(k), id}, true); twice {
				t.Errorf("entity %v got %d twice", entities[k], id)
			}
		}
		for {
			old := done[k].Load()
			if old >= r.Hi-1 || done[k].CompareAndSwap(old, r.Hi-1) {
				break
			}
		}
		answers.Add(1)
	}
	for w := range 4 {
		callers.Go(func() {
			for i := 0; i < 1000 && !t.Failed(); i++ {
				n, k := nodes[(i/3+w)%2], (i*7+w)%len(entities)
				j := (k + 1) % len(entities)
				floors := [2]int64{done[k].Load(), done[j].Load()}
				if i%2 == 0 {
					if r, err := n.NextN(context.Background(), entities[k], 1+i%3); err == nil {
						answer(k, floors[0], r)
					} else if !errors.Is(err, leaf.ErrNotReady) {
						t.Error(err)
					}
					continue
				}
				results, err := n.NextEach(context.Background(), []sequence.Request{{Entity: entities[k], Count: 2}, {Entity: entities[j], Count: 1}})
				if err != nil {
					t.Error(err)
				}
				for x, r := range results {
					if r.Err == nil {
						answer([]int{k, j}[x], floors[x], r.Range)
					} else if !errors.Is(r.Err, leaf.ErrNotReady) {
						t.Error(r.Err)
					}
				}
			}
		})
	}
	callers.Wait()
	close(stop)
	changes.Wait()
	if n := answers.Load(); n < 300 {
		t.Errorf("only %d answers: nothing was proved", n)
	}
}
