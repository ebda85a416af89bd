package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/sequence"
)

// Whoever owns the section gives larger numbers than every owner before, and the others give none.
func TestOwners(t *testing.T) {
	c := newCluster()
	nodes := map[string]*sequence.Positions{"a": c.node(t, "a", sequence.Config{Step: 10}), "b": c.node(t, "b", sequence.Config{Step: 10})}
	e := sequence.Number(7)
	last := int64(0)
	for round, owner := range []string{"a", "b", "a", "a", "b"} {
		c.own(owner)
		for range 3 {
			n := next(t, nodes[owner], e)
			if n <= last {
				t.Fatalf("round %d: %s gave %d after %d", round, owner, n, last)
			}
			last = n
		}
		for name, n := range nodes {
			if got, err := n.Next(t.Context(), e); name != owner && !errors.Is(err, leaf.ErrNotReady) {
				t.Fatalf("round %d: %s does not own the section: %d, %v", round, name, got, err)
			} else if name == owner {
				last = got
			}
		}
	}
	c.own("")
	for name, n := range nodes {
		if st := n.Status(); st.Resident != 0 {
			t.Errorf("%s owns nothing and remembers %d entities", name, st.Resident)
		}
	}
}

// The process stands still after it has taken numbers, and before it asks for its term: at the worst moment,
// the other node owns the section and gives numbers.
func TestTakesFirst(t *testing.T) {
	e := sequence.Number(7)
	for name, take := range map[string]func(a *sequence.Positions) (int64, error){
		"one":  func(a *sequence.Positions) (int64, error) { return a.Next(context.Background(), e) },
		"peek": func(a *sequence.Positions) (int64, error) { return a.Peek(context.Background(), e) },
		"skip": func(a *sequence.Positions) (int64, error) { return a.SkipTo(context.Background(), e, 5) },
		"a batch": func(a *sequence.Positions) (int64, error) {
			got, err := a.NextEach(context.Background(), []sequence.Request{{Entity: e, Count: 3}})
			return got[0].Range.Lo, errors.Join(err, got[0].Err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster()
			a, b := c.node(t, "a", sequence.Config{Step: 10}), c.node(t, "b", sequence.Config{Step: 10})
			mine := c.own("a")
			next(t, a, e)
			highest := int64(0)
			mine.onValid = func() {
				mine.onValid = nil
				c.own("b")
				highest = next(t, b, e)
				c.own("a")
			}
			got, err := take(a)
			switch {
			case highest == 0:
				t.Fatal("the term was not asked after the numbers were taken")
			case err != nil:
				t.Errorf("the node owns the section again: %v", err)
			case got <= highest:
				t.Errorf("%d after the other node gave %d", got, highest)
			}
			if a.Status().Lost == 0 {
				t.Error("the lost numbers are not counted")
			}
		})
	}
}

// A block that was asked for in one term is not used in another.
func TestBlockOfAnEarlierTerm(t *testing.T) {
	c := newCluster()
	a, b := c.node(t, "a", sequence.Config{Step: 10}), c.node(t, "b", sequence.Config{Step: 10})
	e := sequence.Number(7)
	c.own("a")
	high := int64(0)
	c.intercept(func(_ string, _ int, do func() sequence.Block) (sequence.Block, error) {
		late := do()
		c.intercept(nil)
		c.own("b")
		high = next(t, b, e)
		c.own("a")
		return late, nil
	})
	if got := next(t, a, e); got <= high {
		t.Errorf("%d of a block from before the other node gave %d", got, high)
	}
}

// The registry is wrong: both nodes take themselves for the owner. Their numbers are not in order, but no entity is
// given one twice: a position does not count through the block of the other node.
func TestTwoOwnersRepeatNothing(t *testing.T) {
	c := newCluster()
	c.split = true
	a, b := c.node(t, "a", sequence.Config{Step: 10}), c.node(t, "b", sequence.Config{Step: 10})
	entities := inSection(3, 3)
	given := map[string]bool{}
	for i := range 200 {
		n := a
		if i%7 > 3 {
			n = b
		}
		e := entities[i%3]
		what := fmt.Sprint(e, " ", next(t, n, e))
		if given[what] {
			t.Fatalf("given twice: %s", what)
		}
		given[what] = true
	}
}

// A section whose owner changes all the time is an error, not a call without an end.
func TestRestlessOwner(t *testing.T) {
	c, a := one(t, sequence.Config{})
	c.intercept(func(_ string, _ int, do func() sequence.Block) (sequence.Block, error) {
		b := do()
		c.own("a")
		return b, nil
	})
	e := sequence.Number(7)
	if _, err := a.Next(t.Context(), e); !errors.Is(err, leaf.ErrNotReady) {
		t.Errorf("one: %v", err)
	}
	if got, err := a.NextEach(t.Context(), []sequence.Request{{Entity: e, Count: 1}}); err != nil || !errors.Is(got[0].Err, leaf.ErrNotReady) {
		t.Errorf("a batch: %v, %v", got, err)
	}
	if n := c.count(); n > 10 {
		t.Errorf("%d calls", n)
	}
}
