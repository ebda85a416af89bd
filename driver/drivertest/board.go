package drivertest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

var boardCases = []testCase{
	{"notices only grow", boardNotices},
	{"notices of many nodes at once", boardRace},
	{"answers are replaced", boardAnswers},
	{"a question is forgotten", boardForgets},
	{"nodes enter and leave", boardNodes},
	{"the board needs its tables", boardMissing},
}

// boards returns the board as several nodes have it.
func boards(t *testing.T, b Backend) []segment.Board {
	t.Helper()
	if b.NoMeta {
		t.Skip("this database has no board")
	}
	all := []segment.Board{b.Store}
	if b.Other != nil {
		all = append(all, b.Other(t))
	}
	return all
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantNotices(t *testing.T, all []segment.Board, want ...segment.Notice) {
	t.Helper()
	byTag := func(x, y segment.Notice) int { return strings.Compare(x.Tag, y.Tag) }
	slices.SortFunc(want, byTag)
	for i, board := range all {
		got, err := board.Notices(ctx(t))
		must(t, err)
		slices.SortFunc(got, byTag)
		if diff := gocmp.Diff(want, got); diff != "" && len(want)+len(got) > 0 {
			t.Errorf("notices as store %d has them (-want +got):\n%s", i, diff)
		}
	}
}

func boardNotices(t *testing.T, b Backend) {
	all := boards(t, b)
	wantNotices(t, all)
	last := all[len(all)-1]
	must(t, all[0].Post(ctx(t), segment.Notice{Tag: "a", Asked: 1, Regress: 50}))
	must(t, last.Post(ctx(t), segment.Notice{Tag: "a", Regress: 40, Repaired: 60}))
	want := segment.Notice{Tag: "a", Asked: 1, Regress: 50, Repaired: 60}
	wantNotices(t, all, want)
	must(t, last.Post(ctx(t), want))
	wantNotices(t, all, want)
	must(t, last.Post(ctx(t), segment.Notice{Tag: "a", Asked: 2, Regress: 49, Repaired: math.MaxInt64}))
	want.Asked, want.Repaired = 2, math.MaxInt64
	notices := []segment.Notice{want}
	for i, tag := range []string{"A", "a ", " a", "ä", strings.Repeat("x", leaf.MaxTagLen), "a'\"`\\%_/..", "订单"} {
		n := segment.Notice{Tag: tag, Regress: int64(i + 1)}
		must(t, all[0].Post(ctx(t), n))
		notices = append(notices, n)
	}
	wantNotices(t, all, notices...)
}

func boardRace(t *testing.T, b Backend) {
	all := boards(t, b)
	const writers = 8
	var writing sync.WaitGroup
	for i := range writers {
		writing.Go(func() {
			board := all[i%len(all)]
			for k := range 5 {
				n := int64(i + k*writers)
				if err := board.Post(ctx(t), segment.Notice{Tag: "a", Asked: n, Regress: n, Repaired: n}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	const top = 5*writers - 1
	wantNotices(t, all, segment.Notice{Tag: "a", Asked: top, Regress: top, Repaired: top})
}

func boardAnswers(t *testing.T, b Backend) {
	all := boards(t, b)
	last := all[len(all)-1]
	one := segment.Answer{Tag: "a", Node: "n1", Asked: 7, High: 100, Latched: true}
	two := segment.Answer{Tag: "a", Node: "n2", Asked: 8, High: math.MaxInt64}
	must(t, all[0].Answer(ctx(t), one))
	must(t, last.Answer(ctx(t), two))
	must(t, last.Answer(ctx(t), segment.Answer{Tag: "A", Node: "n1", High: 5}))
	one.Asked, one.High, one.Latched = 3, 50, false
	must(t, last.Answer(ctx(t), one))
	must(t, all[0].Enter(ctx(t), segment.Member{Node: "n1"}))
	for i, board := range all {
		got, err := board.Answers(ctx(t), "a")
		must(t, err)
		slices.SortFunc(got, func(x, y segment.Answer) int { return strings.Compare(x.Node, y.Node) })
		if diff := gocmp.Diff([]segment.Answer{one, two}, got); diff != "" {
			t.Errorf("answers as store %d has them (-want +got):\n%s", i, diff)
		}
	}
}

func boardForgets(t *testing.T, b Backend) {
	all := boards(t, b)
	last := all[len(all)-1]
	wantForgotten := func(want int64) {
		t.Helper()
		for i, board := range all {
			if got, err := board.Forgotten(ctx(t)); err != nil || got != want {
				t.Errorf("store %d: the last question that was forgotten is %d, %v; want %d", i, got, err, want)
			}
		}
	}
	const now = int64(1_800_000_000_000_000_000)
	wantForgotten(0)
	must(t, last.Enter(ctx(t), segment.Member{Node: "n1"}))
	kept := []segment.Notice{{Tag: "A", Asked: now}, {Tag: "later", Asked: now + 1}, {Tag: "regress", Asked: now, Regress: 1}, {Tag: "repaired", Asked: now, Repaired: 1}}
	for _, n := range append(kept, segment.Notice{Tag: "a", Asked: now}) {
		must(t, all[0].Post(ctx(t), n))
		for node, x := range map[string]segment.Answer{"n1": {}, "n2": {High: 5}, "n3": {Latched: true}} {
			x.Tag, x.Node, x.Asked = n.Tag, node, n.Asked
			must(t, all[0].Answer(ctx(t), x))
		}
	}
	for range 2 {
		for _, tag := range []string{"a", "later", "regress", "repaired", "never there"} {
			must(t, last.Forget(ctx(t), tag, now))
		}
		wantNotices(t, all, kept...)
		wantForgotten(now)
		for tag, want := range map[string]int{"a": 2, "A": 3, "later": 3, "regress": 3, "repaired": 3} {
			if got, err := all[0].Answers(ctx(t), tag); err != nil || len(got) != want {
				t.Errorf("answers about tag %q: %v, %v; want %d", tag, got, err, want)
			}
		}
	}
	must(t, all[0].Post(ctx(t), segment.Notice{Tag: "a", Asked: 7})) // by a clock that is behind
	must(t, all[0].Forget(ctx(t), "a", 7))
	wantForgotten(now)
	if got, err := all[0].Nodes(ctx(t)); err != nil || len(got) != 1 {
		t.Errorf("nodes %v, %v; want n1 only", got, err)
	}
}

func boardNodes(t *testing.T, b Backend) {
	all := boards(t, b)
	want := func(nodes ...segment.Member) {
		t.Helper()
		for i, board := range all {
			got, err := board.Nodes(ctx(t))
			must(t, err)
			slices.SortFunc(got, func(x, y segment.Member) int { return strings.Compare(x.Node, y.Node) })
			if !slices.Equal(got, nodes) {
				t.Errorf("nodes as store %d has them: %v, want %v", i, got, nodes)
			}
		}
	}
	want()
	must(t, all[0].Answer(ctx(t), segment.Answer{Tag: "a", Node: "n9"}))
	want()
	for i := range 3 {
		must(t, all[i%len(all)].Enter(ctx(t), segment.Member{Node: fmt.Sprint("n", i), Process: 9, Fence: 7}))
		must(t, all[0].Enter(ctx(t), segment.Member{Node: fmt.Sprint("n", i), Process: int64(i), Fence: int64(i) * (math.MaxInt64 / 2)}))
	}
	n0, n2 := segment.Member{Node: "n0"}, segment.Member{Node: "n2", Process: 2, Fence: math.MaxInt64 - 1}
	want(n0, segment.Member{Node: "n1", Process: 1, Fence: math.MaxInt64 / 2}, n2)
	must(t, all[len(all)-1].Leave(ctx(t), "n1"))
	must(t, all[0].Leave(ctx(t), "never there"))
	want(n0, n2)
	if got, err := all[0].Answers(ctx(t), "a"); err != nil || len(got) != 1 {
		t.Errorf("answers %v, %v; want the one of n9", got, err)
	}
}

func boardMissing(t *testing.T, b Backend) {
	if !b.NoMeta {
		t.Skip("this database has a board")
	}
	_, notices := b.Store.Notices(ctx(t))
	_, answers := b.Store.Answers(ctx(t), "a")
	_, nodes := b.Store.Nodes(ctx(t))
	_, forgotten := b.Store.Forgotten(ctx(t))
	for name, err := range map[string]error{
		"Notices": notices, "Answers": answers, "Nodes": nodes, "Forgotten": forgotten,
		"Forget": b.Store.Forget(ctx(t), "a", 1),
		"Post":   b.Store.Post(ctx(t), segment.Notice{Tag: "a"}),
		"Answer": b.Store.Answer(ctx(t), segment.Answer{Tag: "a", Node: "n"}),
		"Enter":  b.Store.Enter(ctx(t), segment.Member{Node: "n"}),
		"Leave":  b.Store.Leave(ctx(t), "n"),
	} {
		if !errors.Is(err, segment.ErrSchema) || !strings.Contains(err.Error(), "leaf schema apply") {
			t.Errorf("%s: %v; want ErrSchema that names leaf schema apply", name, err)
		}
	}
}
