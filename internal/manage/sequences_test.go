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
	ask(create, 1, nil)
	store.Remove(row)
	used := int64(900)
	if err := store.Update(t.Context(), sequence.RowName("chat", 8), segment.Change{MaxID: &used}); err != nil {
		t.Fatal(err)
	}
	ask(create, 0, leaf.ErrConflict)
	create.Start = used
	ask(create, 1, nil)

	if err := store.Delete(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	if err := store.Create(t.Context(), segment.NewRow{Tag: row, Start: used, Step: 500}); err != nil {
		t.Fatal(err)
	}
	store.Remove(sequence.RowName("chat", 9))
	ask(create, 0, leaf.ErrConflict) // row is in plain order
}
