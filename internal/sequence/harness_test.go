package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/sequence"
)

var errDown = errors.New("the store does not answer")

// cluster is the rows of a tag's sections and who owns them all, for the nodes of a test.
type cluster struct {
	mu    sync.Mutex
	ends  map[int]int64
	owner *term
	split bool // every node takes itself for the owner
	calls int

	// onReserve, if set, stands between a node and the row. Without do the row does not move.
	onReserve func(node string, section int, do func() sequence.Block) (sequence.Block, error)
}

// term is one of a node. onValid, if set, runs before each answer of Valid.
type term struct {
	of      *cluster
	node    string
	onValid func()
}

func (t *term) Valid() bool {
	if t.onValid != nil {
		t.onValid()
	}
	t.of.mu.Lock()
	defer t.of.mu.Unlock()
	return t.of.split || t.of.owner == t
}

func newCluster() *cluster { return &cluster{ends: map[int]int64{}} }

// own begins a term of the node, which ends that of the owner before. "" owns nothing.
func (c *cluster) own(node string) *term {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owner = nil
	if node != "" {
		c.owner = &term{of: c, node: node}
	}
	return c.owner
}

// move moves the row as another node does that took itself for the owner, and returns what it reserved.
func (c *cluster) move(section int, n int64) leaf.Range {
	c.mu.Lock()
	defer c.mu.Unlock()
	lo := max(c.ends[section], 1)
	c.ends[section] = lo + n
	return leaf.Range{Lo: lo, Hi: lo + n}
}

func (c *cluster) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

func (c *cluster) intercept(f func(node string, section int, do func() sequence.Block) (sequence.Block, error)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.onReserve = f
}

// blocks is the way of one node to the rows.
type blocks struct {
	*cluster

	node string
	mine *term // of a split cluster
}

func (b blocks) Reserve(ctx context.Context, section int, n int64) (sequence.Block, error) {
	if err := leaf.Admit(ctx); err != nil { // as the engine does
		return sequence.Block{}, err
	}
	b.mu.Lock()
	b.calls++
	owner, on := b.owner, b.onReserve
	if b.split {
		owner = b.mine
	}
	b.mu.Unlock()
	if owner == nil || owner.node != b.node {
		return sequence.Block{}, fmt.Errorf("%w: section %d has another owner", leaf.ErrNotReady, section)
	}
	do := func() sequence.Block { return sequence.Block{Range: b.move(section, n), Term: owner} }
	if on != nil {
		return on(b.node, section, do)
	}
	return do(), nil
}

func (c *cluster) node(t testing.TB, name string, cfg sequence.Config) *sequence.Positions {
	t.Helper()
	cfg.Tag = "chat"
	n, err := sequence.New(blocks{c, name, &term{of: c, node: name}}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// one is a node that owns everything, alone.
func one(t testing.TB, cfg sequence.Config) (*cluster, *sequence.Positions) {
	c := newCluster()
	c.own("a")
	return c, c.node(t, "a", cfg)
}

// inSection returns n entities of one section, every third a text.
func inSection(section, n int) (entities []sequence.Entity) {
	for i := uint64(0); len(entities) < n; i++ {
		e := sequence.Number(i)
		if len(entities)%3 == 2 {
			e = entity(fmt.Sprint("user:", i))
		}
		if e.Section() == section {
			entities = append(entities, e)
		}
	}
	return entities
}

func entity(name string) sequence.Entity {
	e, err := sequence.Parse(name)
	if err != nil {
		panic(err)
	}
	return e
}

func next(t testing.TB, c *sequence.Positions, e sequence.Entity) int64 {
	t.Helper()
	n, err := c.Next(context.Background(), e)
	if err != nil {
		t.Fatalf("entity %v: %v", e, err)
	}
	return n
}
