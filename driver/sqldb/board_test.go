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

func TestBoardOfAllTagsMariaDB(t *testing.T) { serverBoardOfAllTags(t, named("mysql")) }

func TestBoardOfAllTagsPostgres(t *testing.T) { serverBoardOfAllTags(t, named("postgres")) }

func serverBoardOfAllTags(t *testing.T, f flavour) {
	t.Parallel()
	d := f.database(t)
	boardOfAllTags(t, d.URL(), d.Open(t))
}

func TestBoardOfAllTagsSQLite(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "leaf.db")
	boardOfAllTags(t, "sqlite:"+path, raw(t, path))
}

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
