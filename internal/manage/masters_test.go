package manage_test

import (
	"context"
	"errors"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// mastersNode starts an engine whose tag order lives in two databases, and returns it and its operations.
func mastersNode(t *testing.T, a, b *memory.Store) (*segment.Allocator, manage.Backend) {
	t.Helper()
	dir, err := datadir.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	router, err := segment.NewRouter([]segment.NamedStore{{Name: "a", Store: a}, {Name: "b", Store: b}}, []segment.TagRule{{Pattern: "order", Store: "a,b*1000"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.RecordRule(router.Binding(0)), b.RecordRule(router.Binding(1))); err != nil {
		t.Fatal(err)
	}
	alloc, err := segment.New(router, dir, segment.Config{NodeID: dir.NodeID(), FixedStep: true, LoadTimeout: time.Second})
	if err == nil {
		err = alloc.Start(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(alloc.Close(context.Background()), dir.Close()); err != nil {
			t.Error(err)
		}
	})
	return alloc, manage.On(site{catalog: &manage.Catalog{
		Stores: []manage.Store{a, b}, Router: router, Timeout: 5 * time.Second, Mark: alloc.Mark,
		Engine: func(context.Context) (*segment.Allocator, error) { return alloc, nil }, TagChanged: alloc.Refresh,
	}})
}

// TestCreateLostRowAsTheTextsSay: the rows of a tag in two databases vanished, and another node has taken more of one than the one that
// makes them again. What the refusals say leads to a start above both: each number that they name is an ID, as --start is.
func TestCreateLostRowAsTheTextsSay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := memory.New(), memory.New()
		const part = "order~2of2~1000"
		one, do := mastersNode(t, a, b)
		other, _ := mastersNode(t, a, b)
		row := segment.NewRow{Tag: "order", Start: 1, Step: 10}
		if _, err := manage.Ask(t.Context(), do, manage.CreateTag{NewRow: row}); err != nil {
			t.Fatal(err)
		}
		for i, alloc := range []*segment.Allocator{one, other} {
			if _, err := alloc.NextN(t.Context(), part, 1+50*i); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		a.Remove("order~1of2~1000")
		b.Remove(part)
		says := regexp.MustCompile(`use --start (\d+) or more\. This start is above all that nodes have told\. Where a row .* use --start with that number plus 2 times the sum of one block, 1000, three times`)
		for range 3 {
			_, err := manage.Ask(t.Context(), do, manage.CreateTag{NewRow: row})
			if err == nil {
				break
			}
			m := says.FindStringSubmatch(err.Error())
			if !errors.Is(err, leaf.ErrConflict) || m == nil {
				t.Fatal(err)
			}
			row.Start, _ = strconv.ParseInt(m[1], 10, 64)
		}
		made, err := b.Lookup(t.Context(), part)
		if high := max(one.Mark(part).High, other.Mark(part).High); err != nil || made.MaxID < high {
			t.Errorf("the row begins at %d, %v; want %d or more", made.MaxID, err, high)
		}
	})
}

// TestCreateAsksForAllLostRows: the rows of a tag in two databases vanished. The node that makes them again has taken numbers of one
// row, and another node those of the other, which it has not told yet. No row begins below a number of either.
func TestCreateAsksForAllLostRows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := memory.New(), memory.New()
		parts := []string{"order~1of2~1000", "order~2of2~1000"}
		one, do := mastersNode(t, a, b)
		other, _ := mastersNode(t, a, b)
		row := segment.NewRow{Tag: "order", Start: 1, Step: 10}
		if _, err := manage.Ask(t.Context(), do, manage.CreateTag{NewRow: row}); err != nil {
			t.Fatal(err)
		}
		if _, err := one.NextN(t.Context(), parts[0], 1); err != nil {
			t.Fatal(err)
		}
		if _, err := other.NextN(t.Context(), parts[1], 5000); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		a.Remove(parts[0])
		b.Remove(parts[1])
		row.Start = 100
		if _, err := manage.Ask(t.Context(), do, manage.CreateTag{NewRow: row}); !errors.Is(err, leaf.ErrConflict) {
			t.Errorf("a start below the numbers of the other node: %v, want a conflict", err)
		}
		if made, err := b.Lookup(t.Context(), parts[1]); err == nil {
			t.Errorf("the row begins at %d, and the other node holds numbers up to %d", made.MaxID, other.Mark(parts[1]).High)
		}
	})
}

// TestCreateLostRowsBesideASilentNode: as before, and a third node does not answer. The refusal says what to add for IDs, which lie
// further apart than the numbers of a row.
func TestCreateLostRowsBesideASilentNode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, b := memory.New(), memory.New()
		one, do := mastersNode(t, a, b)
		other, _ := mastersNode(t, a, b)
		row := segment.NewRow{Tag: "order", Start: 1, Step: 10}
		if _, err := manage.Ask(t.Context(), do, manage.CreateTag{NewRow: row}); err != nil {
			t.Fatal(err)
		}
		if _, err := one.NextN(t.Context(), "order~1of2~1000", 1); err != nil {
			t.Fatal(err)
		}
		if _, err := other.NextN(t.Context(), "order~2of2~1000", 5000); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		a.Remove("order~1of2~1000")
		b.Remove("order~2of2~1000")
		if err := b.Enter(t.Context(), segment.Member{Node: "ghost", Process: 1}); err != nil {
			t.Fatal(err)
		}
		row.Start = 100
		_, err := manage.Ask(t.Context(), do, manage.CreateTag{NewRow: row})
		if says := "not every node can be asked"; !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), says) {
			t.Fatalf("got %v, want a conflict that says %q", err, says)
		}
		if says := "plus 2 times the sum of one block, 1000, three times "; !strings.Contains(err.Error(), says) {
			t.Errorf("got %v, want %q", err, says)
		}
	})
}

// TestCreateBesideARowBelowZero: a row that could not be read was set to -1, as docs/GUARANTEES.md says, and waits for a repair. It does
// not show where its numbers end. A row that the rule uses is repaired; another one gets a number of the operator's tables.
func TestCreateBesideARowBelowZero(t *testing.T) {
	t.Parallel()
	for name, says := range map[string]string{
		"order":           "take the highest number of the tag in your own tables, plus three times",
		"order~1of3~1000": "take the highest number of the tag in your own tables, plus three times",
		"order~1of2~1000": "leaf tag repair TAG",
		"plain":           "take the highest number of the tag in your own tables, plus three times",
	} {
		a, b := memory.New(), memory.New()
		router, err := segment.NewRouter([]segment.NamedStore{{Name: "a", Store: a}, {Name: "b", Store: b}}, []segment.TagRule{{Pattern: "order", Store: "a,b*1000"}, {Pattern: "*", Store: "b"}})
		if err != nil {
			t.Fatal(err)
		}
		a.Put(segment.Row{Tag: name, MaxID: -1, Step: 10})
		do := manage.On(site{catalog: &manage.Catalog{
			Stores: []manage.Store{a, b}, Router: router, Timeout: time.Minute,
			Mark: func(string) fence.Mark { return fence.Mark{} }, TagChanged: func(context.Context, string) error { return nil },
		}})
		tag, _ := segment.EndOf(name, 0)
		_, err = manage.Ask(t.Context(), do, manage.CreateTag{NewRow: segment.NewRow{Tag: tag, Start: 1, Step: 10}})
		if !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "-1") {
			t.Errorf("tag %q beside row %q at -1: %v; want a conflict that says %q", tag, name, err, says)
		}
	}
}
