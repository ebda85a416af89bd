package manage_test

import (
	"context"
	"errors"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/sequence"
	"github.com/leaf-idgen/leaf/segment"
)

// failsAfter is a store that stops creating rows.
type failsAfter struct {
	*memory.Store
	rows *int // that it creates yet
}

func (s failsAfter) Create(ctx context.Context, row segment.NewRow) error {
	if *s.rows--; *s.rows < 0 {
		return errors.New("the network is away")
	}
	return s.Store.Create(ctx, row)
}

// TestCreateSequence: a second call makes what a first one has not made, but not a row that may be lost, and takes no
// tag for a row that is none.
func TestCreateSequence(t *testing.T) {
	t.Parallel()
	store := memory.New()
	row := sequence.RowName("chat", 7)
	create := manage.CreateSequence{Name: "chat", Start: 1, Step: 500}
	ask := func(q manage.CreateSequence, rows int, want error) {
		t.Helper()
		got, err := manage.Ask(t.Context(), manage.On(site{catalog: catalogOf(t, store)}), q)
		if !errors.Is(err, want) || err == nil && got.Rows != rows {
			t.Errorf("%d rows were made, %v; want %d, %v", got.Rows, err, rows, want)
		}
	}
	broken := catalogOf(t, store)
	left := 100
	broken.Stores[0] = failsAfter{store, &left}
	if _, err := manage.Ask(t.Context(), manage.On(site{catalog: broken}), create); !errors.Is(err, leaf.ErrNotReady) {
		t.Errorf("the store breaks: %v", err)
	}
	ask(create, sequence.Sections-100, nil)
	ask(create, 0, leaf.ErrConflict)

	store.Remove(row)
	ask(create, 0, leaf.ErrConflict) // the entities of the other rows have no numbers yet, and those of this one may have
	create.Start = 2
	ask(create, 1, nil)
	store.Remove(row)
	used := int64(900)
	if err := store.Update(t.Context(), sequence.RowName("chat", 8), segment.Change{MaxID: &used}); err != nil {
		t.Fatal(err)
	}
	ask(create, 0, leaf.ErrConflict)
	create.Start = used + 1
	ask(create, 1, nil)

	if err := store.Delete(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	if err := store.Create(t.Context(), segment.NewRow{Tag: row, Start: used + 1, Step: 500}); err != nil {
		t.Fatal(err)
	}
	store.Remove(sequence.RowName("chat", 9))
	ask(create, 0, leaf.ErrConflict) // row is in plain order

	below := segment.Row{Tag: row, MaxID: -1, Step: 500, Options: segment.Options{Order: segment.OrderStrict, FixedStep: true}}
	store.Put(below)
	ask(create, 0, leaf.ErrConflict) // row waits for a repair, and may have issued numbers
	below.MaxID = 1
	store.Put(below)
	ask(create, 1, nil)
}

// TestSetRowOfASequence: leaf tag set changes nothing of one row that would end the numbers of its entities, or make them jump
// for good. A tag whose name looks like that of a row is no row.
func TestSetRowOfASequence(t *testing.T) {
	t.Parallel()
	store := memory.New()
	row, plain := sequence.RowName("chat", 7), sequence.RowName("plain", 7)
	for _, r := range []segment.NewRow{
		{Tag: row, Start: 1, Step: 500, Options: segment.Options{Order: segment.OrderStrict, FixedStep: true}},
		{Tag: plain, Start: 1, Step: 10},
	} {
		if err := store.Create(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		change segment.Change
		want   error
	}{
		"plain order":    {segment.Change{Order: new(segment.OrderPlain)}, leaf.ErrConflict},
		"a dynamic step": {segment.Change{FixedStep: new(false)}, leaf.ErrConflict},
		"a period":       {segment.Change{Period: new("day")}, leaf.ErrConflict},
		"a short step":   {segment.Change{Step: new(int64(10))}, leaf.ErrConflict},
		"a long step":    {segment.Change{Step: new(int64(1_000_001))}, leaf.ErrConflict},
		"another step":   {segment.Change{Step: new(int64(1000))}, nil},
		"a description":  {segment.Change{Description: new("chats")}, nil},
	} {
		for tag, want := range map[string]error{row: c.want, plain: nil} {
			if tag == plain && c.change.Period != nil {
				continue // the row could be changed so once
			}
			_, err := manage.Ask(t.Context(), manage.On(site{catalog: catalogOf(t, store)}), manage.SetTag{Name: tag, Change: c.change})
			if !errors.Is(err, want) {
				t.Errorf("%s of %s: %v; want %v", name, tag, err, want)
			}
		}
	}
	// A row that has a period from before this check keeps it. What has nothing to do with it can be set.
	if err := store.Update(t.Context(), row, segment.Change{Period: new("day")}); err != nil {
		t.Fatal(err)
	}
	if _, err := manage.Ask(t.Context(), manage.On(site{catalog: catalogOf(t, store)}), manage.SetTag{Name: row, Change: segment.Change{Description: new("chat")}}); err != nil {
		t.Errorf("a description beside a period: %v", err)
	}
	if _, err := manage.Ask(t.Context(), manage.On(site{catalog: catalogOf(t, store)}), manage.SetTag{Name: sequence.RowName("none", 1), Change: segment.Change{Step: new(int64(1000))}}); !errors.Is(err, leaf.ErrUnknownTag) {
		t.Errorf("a row that is not there: %v", err)
	}
}
