package drivertest

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// createAgain creates a tag that was there before. A start below known must be refused,
// with a text that says which start is not.
func createAgain(t *testing.T, s Store, tag string, start int64, known string) {
	t.Helper()
	err := s.Create(ctx(t), segment.NewRow{Tag: tag, Start: start, Step: 7})
	if known == "" {
		if err != nil {
			t.Errorf("Create(%q) at %d: %v", tag, start, err)
		}
		return
	}
	if !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), known) {
		t.Errorf("Create(%q) at %d: %v; want ErrConflict with %q", tag, start, err, known)
	}
	if row, err := s.Lookup(ctx(t), tag); !errors.Is(err, leaf.ErrUnknownTag) {
		t.Errorf("after the refused Create(%q): %+v, %v", tag, row, err)
	}
}

func createAfterDelete(t *testing.T, b Backend) {
	all := boards(t, b)
	other := b.Store
	if b.Other != nil {
		other = b.Other(t)
	}
	must(t, b.Store.Create(ctx(t), segment.NewRow{Tag: "a", Start: 100, Step: 7}))
	_, err := b.Store.Reserve(ctx(t), request("a", 7, 7))
	must(t, err)
	must(t, b.Store.Delete(ctx(t), "a"))
	createAgain(t, other, "a", 0, `tag "a" below 107`)
	createAgain(t, other, "a", 106, "use --start 107 or more")
	createAgain(t, other, "A", 1, "")
	createAgain(t, other, "a", 107, "")

	// A row that an operator made lower takes nothing from what is known.
	must(t, other.Delete(ctx(t), "a"))
	put(t, b, "a", 50, 7)
	must(t, b.Store.Delete(ctx(t), "a"))
	createAgain(t, other, "a", 106, "use --start 107 or more")

	// What no node has written says nothing of where the numbers end, or is no end.
	put(t, b, "below", -5, 7)
	if err := b.Store.Delete(ctx(t), "below"); !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "leaf tag repair TAG") {
		t.Errorf("Delete of a max_id below 0: %v; want ErrConflict that names the repair", err)
	}
	put(t, b, "above", segment.MaxMaxID+1, 7)
	must(t, b.Store.Delete(ctx(t), "above"))
	createAgain(t, other, "above", segment.MaxMaxID, "")

	for i, board := range all {
		answers, err := board.Answers(ctx(t), "a")
		must(t, err)
		if want := (segment.Answer{Tag: "a", Node: segment.DeletedRow, High: 107}); len(answers) != 1 || answers[0] != want {
			t.Errorf("answers as store %d has them: %+v; want %+v", i, answers, want)
		}
	}
	if nodes, err := b.Store.Nodes(ctx(t)); err != nil || len(nodes) != 0 {
		t.Errorf("nodes %v, %v; a deleted row is none", nodes, err)
	}
}

// createBesideDelete: whichever of the two is first, no second row begins below the first.
func createBesideDelete(t *testing.T, b Backend) {
	boards(t, b)
	other := b.Store
	if b.Other != nil {
		other = b.Other(t)
	}
	const rounds = 20
	for round := range int64(rounds) {
		start := 100 * (round + 1)
		must(t, b.Store.Create(ctx(t), segment.NewRow{Tag: "a", Start: start, Step: 7}))
		created := make(chan error, 1)
		go func() { created <- other.Create(ctx(t), segment.NewRow{Tag: "a", Start: start - 1, Step: 7}) }()
		must(t, b.Store.Delete(ctx(t), "a"))
		if err := <-created; !errors.Is(err, leaf.ErrConflict) {
			t.Fatalf("Create beside Delete: %v; want ErrConflict", err)
		}
	}
}

func createBelowBoard(t *testing.T, b Backend) {
	boards(t, b)
	for _, c := range []struct {
		tag  string
		know func() error
	}{
		{"answered", func() error {
			return errors.Join(
				b.Store.Answer(ctx(t), segment.Answer{Tag: "answered", Node: "n1", Asked: 1, High: 200}),
				b.Store.Answer(ctx(t), segment.Answer{Tag: "answered", Node: "n2", High: 500, Latched: true}),
				b.Store.Answer(ctx(t), segment.Answer{Tag: "answered", Node: "n3", High: 400}))
		}},
		{"regress", func() error {
			return b.Store.Post(ctx(t), segment.Notice{Tag: "regress", Asked: 900, Regress: 500, Repaired: 400})
		}},
		{"repaired", func() error {
			return b.Store.Post(ctx(t), segment.Notice{Tag: "repaired", Asked: 900, Regress: 400, Repaired: 500})
		}},
	} {
		must(t, c.know())
		createAgain(t, b.Store, c.tag, 499, "use --start 500 or more")
		createAgain(t, b.Store, c.tag, 500, "")
	}
	must(t, b.Store.Answer(ctx(t), segment.Answer{Tag: "odd", Node: "n1", High: math.MaxInt64}))
	createAgain(t, b.Store, "odd", segment.MaxMaxID, "in leaf_repair_node")
	createAgain(t, b.Store, "another", 0, "")
}

// deleteWithoutBoard: where the end of a row cannot be kept, the row is not deleted.
func deleteWithoutBoard(t *testing.T, b Backend) {
	if !b.NoMeta {
		t.Skip("this database has a board")
	}
	put(t, b, "a", 100, 7)
	if err := b.Store.Delete(ctx(t), "a"); !errors.Is(err, segment.ErrSchema) || !strings.Contains(err.Error(), "leaf schema apply") {
		t.Errorf("Delete: %v; want ErrSchema that names leaf schema apply", err)
	}
	if row, err := b.Store.Lookup(ctx(t), "a"); err != nil || row.MaxID != 100 {
		t.Errorf("after the refused Delete: %+v, %v", row, err)
	}
}
