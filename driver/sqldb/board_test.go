package sqldb_test

import (
	"cmp"
	"database/sql"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/segment"
)

// onServer runs a test in a new database of a server, and onFile in a new file.
func onServer(t *testing.T, dialect string, test func(t *testing.T, url string, db *sql.DB)) {
	t.Helper()
	t.Parallel()
	d := named(dialect).database(t)
	test(t, d.URL(), d.Open(t))
}

func onFile(t *testing.T, test func(t *testing.T, url string, db *sql.DB)) {
	t.Helper()
	t.Parallel()
	path := filepath.Join(t.TempDir(), "leaf.db")
	test(t, "sqlite:"+path, raw(t, path))
}

func TestBoardOfAllTagsMariaDB(t *testing.T)  { onServer(t, "mysql", boardOfAllTags) }
func TestBoardOfAllTagsPostgres(t *testing.T) { onServer(t, "postgres", boardOfAllTags) }
func TestBoardOfAllTagsSQLite(t *testing.T)   { onFile(t, boardOfAllTags) }

// boardOfAllTags: a change of the tag rule reads the answers about all tags, and which nodes
// entered a short time ago. A node on the list is no answer.
func boardOfAllTags(t *testing.T, url string, db *sql.DB) {
	t.Helper()
	applySchema(t, url)
	s := open(t, url)
	want := []segment.Answer{{Tag: "a", Node: "n1", Asked: 7, High: 100, Latched: true}, {Tag: "b", Node: "n1", High: 5}}
	for _, x := range want {
		if err := s.Answer(t.Context(), x); err != nil {
			t.Fatal(err)
		}
	}
	for _, node := range []string{"n1", "n2"} {
		if err := s.Enter(t.Context(), segment.Member{Node: node}); err != nil {
			t.Fatal(err)
		}
	}
	execAll(t, db, "UPDATE leaf_repair_node SET seen = seen - 90000 WHERE biz_tag = '' AND node = 'n1'") // 90 s ago
	got, err := s.AllAnswers(t.Context())
	slices.SortFunc(got, func(x, y segment.Answer) int { return cmp.Compare(x.Tag, y.Tag) })
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("answers %v, %v; want %v", got, err, want)
	}
	for age, count := range map[time.Duration]int{time.Minute: 1, 2 * time.Minute: 2} {
		if nodes, err := s.NodesSince(t.Context(), age); err != nil || len(nodes) != count {
			t.Errorf("nodes of the last %v: %v, %v; want %d", age, nodes, err, count)
		}
	}
}

func TestBoardForgetsNodesThatAreGoneMariaDB(t *testing.T)  { onServer(t, "mysql", boardForgets) }
func TestBoardForgetsNodesThatAreGonePostgres(t *testing.T) { onServer(t, "postgres", boardForgets) }
func TestBoardForgetsNodesThatAreGoneSQLite(t *testing.T)   { onFile(t, boardForgets) }

// boardForgets: where each start has a new data directory, nodes that are gone leave no row
// behind for good, except one that says where numbers end.
func boardForgets(t *testing.T, url string, db *sql.DB) {
	t.Helper()
	applySchema(t, url)
	s := open(t, url)
	if err := s.Post(t.Context(), segment.Notice{Tag: "z", Asked: 8}); err != nil {
		t.Fatal(err)
	}
	if err := s.Forget(t.Context(), "z", 8); err != nil {
		t.Fatal(err)
	}
	put := func(node string) {
		if err := s.Enter(t.Context(), segment.Member{Node: node, Process: 3}); err != nil {
			t.Fatal(err)
		}
		for _, x := range []segment.Answer{{Tag: "a", Node: node, Asked: 7}, {Tag: "b", Node: node, High: 5}, {Tag: "c", Node: node, Latched: true}} {
			if err := s.Answer(t.Context(), x); err != nil {
				t.Fatal(err)
			}
		}
	}
	put("gone")
	put("here")
	execAll(t, db, "UPDATE leaf_repair_node SET seen = seen - 86500000 WHERE node = 'gone'")
	s.RunFor(time.Hour)
	if err := s.Enter(t.Context(), segment.Member{Node: "here", Process: 3}); err != nil {
		t.Fatal(err)
	}
	var count int
	if err := db.QueryRow("SELECT COUNT(*) FROM leaf_repair_node WHERE node = 'gone' AND (biz_tag = '' OR biz_tag = 'a')").Scan(&count); err != nil || count > 0 {
		t.Errorf("%d rows of a node that is gone, %v", count, err)
	}
	for tag, want := range map[string]int{"a": 1, "b": 2, "c": 2} {
		if all, err := s.Answers(t.Context(), tag); err != nil || len(all) != want {
			t.Errorf("answers about tag %s: %v, %v; want %d", tag, all, err, want)
		}
	}
	if nodes, err := s.Nodes(t.Context()); err != nil || len(nodes) != 1 {
		t.Errorf("nodes %v, %v; want one", nodes, err)
	}
	if asked, err := s.Forgotten(t.Context()); err != nil || asked != 8 {
		t.Errorf("the last question that was forgotten is %d, %v; want 8", asked, err)
	}
}
