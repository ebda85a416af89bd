package sqldb_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/segment"
)

// looseSQLite returns a store whose tables take any value, as those that another program
// made do.
func looseSQLite(t *testing.T) (*sqldb.Store, *sql.DB) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "leaf.db")
	db := raw(t, path)
	execAll(t, db,
		"CREATE TABLE leaf_alloc (biz_tag TEXT PRIMARY KEY, max_id INTEGER NOT NULL, step INTEGER NOT NULL, description TEXT, update_time TEXT)",
		"CREATE TABLE leaf_tag_option (biz_tag TEXT PRIMARY KEY, min_step INTEGER NOT NULL, max_step INTEGER NOT NULL, fixed_step INTEGER NOT NULL)")
	s := open(t, "sqlite:"+path)
	bind(t, s)
	return s, db
}

// TestRowThatCannotBeRead hides no other row, says what is wrong, and is refused as a row
// that an operator must correct: it is no trouble of the database.
func TestRowThatCannotBeRead(t *testing.T) {
	for _, c := range []struct{ name, damage string }{
		{"a word for the step", "UPDATE leaf_alloc SET step = 'abc' WHERE biz_tag = 'bad'"},
		{"a fraction for max_id", "UPDATE leaf_alloc SET max_id = 1e300 WHERE biz_tag = 'bad'"},
		{"an option that is a word", "INSERT INTO leaf_tag_option (biz_tag, min_step, max_step, fixed_step) VALUES ('bad', 'x', 0, 0)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, db := looseSQLite(t)
			for _, tag := range []string{"a", "bad", "z"} {
				if err := s.Create(t.Context(), segment.NewRow{Tag: tag, Start: 1, Step: 10}); err != nil {
					t.Fatal(err)
				}
			}
			execAll(t, db, c.damage)
			rows, err := s.Rows(t.Context())
			if err != nil || len(rows) != 3 {
				t.Fatalf("Rows = %v, %v; want three rows", rows, err)
			}
			for _, r := range rows {
				switch {
				case r.Tag == "bad" && (r.Problem == nil || r.MaxID != 0 || r.Step != 0):
					t.Errorf("row %+v; want its problem only", r)
				case r.Tag != "bad" && (r.Problem != nil || r.Step != 10):
					t.Errorf("row %+v; want it as it is", r)
				}
			}
			if _, err := s.Lookup(t.Context(), "bad"); !errors.Is(err, leaf.ErrInvalidRow) {
				t.Errorf("Lookup: %v; want ErrInvalidRow", err)
			}
			if _, err := s.Lookup(t.Context(), "a"); err != nil {
				t.Errorf("Lookup of another tag: %v", err)
			}
		})
	}
}

// TestReserveOfARowThatCannotBeRead is no trouble of the database either.
func TestReserveOfARowThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s, db := looseSQLite(t)
	if err := s.Create(t.Context(), segment.NewRow{Tag: "bad", Start: 1, Step: 10}); err != nil {
		t.Fatal(err)
	}
	execAll(t, db, "UPDATE leaf_alloc SET step = 'abc' WHERE biz_tag = 'bad'")
	if r, err := s.Reserve(t.Context(), segment.Request{Tag: "bad", Min: 1, Max: 100}); !errors.Is(err, leaf.ErrInvalidRow) {
		t.Errorf("Reserve = %v, %v; want ErrInvalidRow", r, err)
	}
}
