package sequence_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/internal/owner"
	"github.com/leaf-idgen/leaf/internal/sequence"
	"github.com/leaf-idgen/leaf/segment"
)

// always owns everything, in one term.
type always struct{}

func (always) Term(string) (segment.Term, error) { return always{}, nil }
func (always) Valid() bool                       { return true }

// stored is a node whose sections are rows of the store.
func stored(t testing.TB, store *memory.Store, name string, terms segment.Terms, step int64) *sequence.Positions {
	t.Helper()
	c, _ := storedIn(t, store, name, terms, step)
	return c
}

// storedIn is stored on any store, with the node's engine.
func storedIn(t testing.TB, store segment.Store, name string, terms segment.Terms, step int64) (*sequence.Positions, *segment.Allocator) {
	t.Helper()
	dir, err := datadir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	router, err := segment.NewRouter([]segment.NamedStore{{Name: "default", Store: store}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	alloc, err := segment.New(router, dir, segment.Config{NodeID: dir.NodeID(), Terms: terms, FixedStep: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := alloc.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(alloc.Close(context.Background()), dir.Close()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	})
	c, err := sequence.New(sequence.Rows{Tag: "chat", Tags: alloc, Terms: terms}, sequence.Config{Tag: "chat", Step: step})
	if err != nil {
		t.Fatal(err)
	}
	return c, alloc
}

func putRow(store *memory.Store, section int, maxID int64) { putRowOf(store, section, maxID, 10) }

func putRowOf(store *memory.Store, section int, maxID, step int64) {
	store.Put(segment.Row{Tag: sequence.RowName("chat", section), MaxID: maxID, Step: step, Options: segment.Options{Order: segment.OrderStrict}})
}

func TestRows(t *testing.T) {
	store := memory.New()
	e := sequence.Number(7)
	putRow(store, e.Section(), 1)
	a := stored(t, store, "a", always{}, 10)
	for want := int64(1); want <= 35; want++ {
		if got := next(t, a, e); got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	}
	if r, err := a.NextN(t.Context(), e, 1000); err != nil || r != (leaf.Range{Lo: 36, Hi: 1036}) {
		t.Errorf("a thousand: %v, %v", r, err)
	}
	if _, err := a.Next(t.Context(), sequence.Number(1)); !errors.Is(err, leaf.ErrUnknownTag) {
		t.Errorf("a section without a row: %v", err)
	}
}

// A row in plain order would give this node numbers from before its term.
func TestRowsInPlainOrder(t *testing.T) {
	store := memory.New()
	e := sequence.Number(7)
	store.Put(segment.Row{Tag: sequence.RowName("chat", e.Section()), MaxID: 1, Step: 10})
	if n, err := stored(t, store, "a", always{}, 10).Next(t.Context(), e); !errors.Is(err, leaf.ErrInvalidRow) || !strings.Contains(err.Error(), "--order strict --fixed-step") {
		t.Errorf("%d, %v, want ErrInvalidRow that says how the row gets its options again", n, err)
	}
}

// gaps issues ranges of a row in which another node has numbers.
type gaps struct {
	leaf.Issuer

	ranges [][]leaf.Range
}

func (*gaps) Drops(string) *segment.Drops { return new(segment.Drops) }
func (*gaps) Strict(string) bool          { return true }

func (g *gaps) NextN(context.Context, string, int) (r []leaf.Range, _ error) {
	r, g.ranges = g.ranges[0], g.ranges[1:]
	return r, nil
}

// A block is numbers in a row, without those of another node.
func TestRowsWithGaps(t *testing.T) {
	for _, tt := range []struct {
		name   string
		ranges [][]leaf.Range
		want   leaf.Range
	}{
		{"none", [][]leaf.Range{{{Lo: 0, Hi: 10}}}, leaf.Range{Lo: 0, Hi: 10}},
		{"inside", [][]leaf.Range{{{Lo: 1, Hi: 8}, {Lo: 20, Hi: 23}}, {{Lo: 23, Hi: 30}}}, leaf.Range{Lo: 20, Hi: 30}},
		{"between", [][]leaf.Range{{{Lo: 1, Hi: 8}, {Lo: 20, Hi: 23}}, {{Lo: 40, Hi: 47}}, {{Lo: 47, Hi: 50}}}, leaf.Range{Lo: 40, Hi: 50}},
		{"for ever", [][]leaf.Range{{{Lo: 1, Hi: 8}, {Lo: 20, Hi: 23}}, {{Lo: 40, Hi: 47}}, {{Lo: 50, Hi: 53}}, {{Lo: 60, Hi: 67}}}, leaf.Range{}},
	} {
		b, err := sequence.Rows{Tag: "chat", Tags: &gaps{ranges: tt.ranges}, Terms: always{}}.Reserve(t.Context(), 3, 10)
		if b.Range != tt.want || (err != nil) != (tt.want == leaf.Range{}) {
			t.Errorf("%s: %v, %v, want %v", tt.name, b, err, tt.want)
		}
	}
}

// handOver issues ranges, and the owner changes meanwhile.
type handOver struct {
	leaf.Issuer

	c *cluster
}

func (handOver) Drops(string) *segment.Drops { return new(segment.Drops) }
func (handOver) Strict(string) bool          { return true }

func (h handOver) NextN(_ context.Context, _ string, n int) ([]leaf.Range, error) {
	h.c.own("a")
	return []leaf.Range{{Lo: 1, Hi: 1 + int64(n)}}, nil
}

// termsOf is the terms of whoever owns the cluster.
type termsOf struct{ *cluster }

func (o termsOf) Term(string) (segment.Term, error) { return o.owner, nil }

// The term of a block is the one from before its first range.
func TestRowsTermFirst(t *testing.T) {
	c := newCluster()
	c.own("a")
	b, err := sequence.Rows{Tag: "chat", Tags: handOver{c: c}, Terms: termsOf{c}}.Reserve(t.Context(), 3, 10)
	if err != nil || b.Term.Valid() {
		t.Errorf("%v, %v: the term began after the ranges were asked for", b, err)
	}
}

// A row that went back gives no numbers: the fence of segment mode holds for sections.
func TestRowsGoBack(t *testing.T) {
	store := memory.New()
	e := sequence.Number(7)
	putRow(store, e.Section(), 1)
	a := stored(t, store, "a", always{}, 10)
	if _, err := a.NextN(t.Context(), e, 100); err != nil {
		t.Fatal(err)
	}
	putRow(store, e.Section(), 5)
	for {
		if n, err := a.Next(t.Context(), e); errors.Is(err, leaf.ErrRegress) {
			break
		} else if err != nil || n > 200 {
			t.Fatalf("%d, %v, want ErrRegress", n, err)
		}
	}
}

// A node that holds a whole block hears from another one that the row went back: the other one may have been given the
// same numbers. It drops the block, as segment mode drops its ranges.
func TestRowsHearOfARegress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const step = 1000
		store := memory.New()
		e := sequence.Number(7)
		putRowOf(store, e.Section(), 1, step)
		a, b := stored(t, store, "a", always{}, step), stored(t, store, "b", always{}, step)
		next(t, a, e)
		next(t, b, e)
		synctest.Wait() // loads ahead of need have ended
		putRowOf(store, e.Section(), 5, step)
		for {
			if _, err := b.NextN(t.Context(), e, step); errors.Is(err, leaf.ErrRegress) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
		}
		for range step / 2 {
			time.Sleep(time.Second)
			if _, err := a.Next(t.Context(), e); errors.Is(err, leaf.ErrRegress) {
				return
			} else if err != nil {
				t.Fatal(err)
			}
		}
		t.Error("the node gives numbers of a block that it took before the regress")
	})
}

// silentStore is the store of a node that reads nothing of the others any more.
type silentStore struct {
	*memory.Store

	silent atomic.Bool
}

func (s *silentStore) Notices(ctx context.Context) ([]segment.Notice, error) {
	if s.silent.Load() {
		return nil, errDown
	}
	return s.Store.Notices(ctx)
}

// The database forgets the ranges of a node that is gone. The node has skipped numbers of an entity, or lost them with calls whose
// answers did not arrive, or their rows were deleted, and it has given one number behind them, which is in no table yet. A repair
// above the number that the error tells the operator to find does not let it be given again.
func TestRepairByTheMarginBesideSkips(t *testing.T) {
	const step, many = 10, 500
	for name, tt := range map[string]struct {
		leaveOut func(t *testing.T, c *sequence.Positions, e sequence.Entity) error
		says     string
	}{
		"skipped": {
			leaveOut: func(t *testing.T, c *sequence.Positions, e sequence.Entity) error {
				t.Helper()
				_, err := c.SkipTo(t.Context(), e, many)
				return err
			},
			says: "have skipped in a sequence",
		},
		"lost": {
			leaveOut: func(t *testing.T, c *sequence.Positions, e sequence.Entity) error {
				t.Helper()
				_, err := c.NextN(t.Context(), e, many)
				return err
			},
			says: "have lost in calls that failed",
		},
		"deleted": {
			leaveOut: func(t *testing.T, c *sequence.Positions, e sequence.Entity) error {
				t.Helper()
				_, err := c.NextN(t.Context(), e, many) // each was in a table for a while
				return err
			},
			says: "have deleted from your tables",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := &silentStore{Store: memory.New()}
				e := sequence.Number(7)
				row := sequence.RowName("chat", e.Section())
				putRow(store.Store, e.Section(), 1)
				a, alloc := storedIn(t, store.Store, "a", always{}, step)
				b, _ := storedIn(t, store, "b", always{}, step)
				inTables := next(t, a, e)
				synctest.Wait() // no range of one lies between those of the other
				if err := tt.leaveOut(t, b, e); err != nil {
					t.Fatal(err)
				}
				held := next(t, b, e)
				synctest.Wait()
				store.silent.Store(true)
				putRow(store.Store, e.Section(), 1)
				for err := error(nil); !errors.Is(err, leaf.ErrRegress); {
					if _, err = a.Next(t.Context(), e); err != nil && !errors.Is(err, leaf.ErrRegress) {
						t.Fatal(err)
					}
					synctest.Wait()
				}
				_, err := alloc.Repair(t.Context(), row, 0)
				if !errors.Is(err, segment.ErrSilentNodes) {
					t.Fatal(err)
				}
				number := inTables + 3*step*2 + 1 // two nodes, and one number that a client holds
				if strings.Contains(err.Error(), tt.says) {
					number += many
				}
				if _, err := alloc.Repair(t.Context(), row, number); err != nil {
					t.Fatal(err)
				}
				time.Sleep(5 * time.Second)
				for range 2 * many {
					if next(t, a, e) == held {
						t.Fatalf("a gives number %d, which b has given", held)
					}
				}
			})
		})
	}
}

// Two nodes with real owners and the engine of segment mode: the owner leaves, or another node joins, again and again,
// while both ask for numbers. The numbers of each entity increase, whatever node gives them.
func TestRowsChangeOwners(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, registry := memory.New(), memory.NewRegistry()
		entities := append(inSection(3, 3), inSection(4, 3)...)
		putRow(store, 3, 1)
		putRow(store, 4, 1)
		nodes := map[string]*sequence.Positions{}
		epoch := time.Now()
		last, by := map[sequence.Entity]int64{}, map[string]int{}
		for round := range 6 {
			name := fmt.Sprint("node", round)
			slots, err := owner.New(registry.Open(), owner.Config{
				Address: name, Namespace: "order", Slots: 4, Elapsed: func() time.Duration { return time.Since(epoch) },
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := slots.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			nodes[name] = stored(t, store, name, slots, 10)
			for range 100 {
				for at, n := range nodes {
					for _, e := range entities {
						got, err := n.Next(t.Context(), e)
						switch {
						case errors.Is(err, leaf.ErrNotReady):
							continue
						case err != nil:
							t.Fatal(err)
						}
						if got <= last[e] {
							t.Fatalf("%s: entity %v got %d after %d", at, e, got, last[e])
						}
						last[e] = got
						by[at]++
					}
				}
				time.Sleep(40 * time.Millisecond)
			}
			if round%2 == 1 {
				if err := slots.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
				delete(nodes, name)
			} else {
				t.Cleanup(func() { _ = slots.Close(context.Background()) })
			}
		}
		if len(by) < 3 {
			t.Errorf("numbers came from %v: nothing was proved", by)
		}
	})
}
