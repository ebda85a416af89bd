package sqldb_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
)

// typed makes a database whose leaf_alloc has the given types, and one row, "a".
func typed(t *testing.T, dialect, maxID, step, row string) (url string) {
	t.Helper()
	var db *sql.DB
	switch dialect {
	case "mysql":
		d := server.MariaDB(t)
		url, db = d.URL(), d.Open(t)
	case "postgres":
		d := server.Postgres(t)
		url, db = d.URL(), d.Open(t)
	case "sqlite":
		path := filepath.Join(t.TempDir(), "leaf.db")
		var err error
		if db, err = sql.Open("sqlite", path); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		url = "sqlite:" + path
	}
	execAll(t, db, fmt.Sprintf("CREATE TABLE leaf_alloc (biz_tag varchar(128) PRIMARY KEY, max_id %s, step %s, update_time timestamp)", maxID, step),
		"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('a', "+row+")")
	return url
}

// TestColumnTypes: a column that rounds, or compares as text, refuses the start.
func TestColumnTypes(t *testing.T) {
	for _, c := range []struct {
		dialect, maxID, step string
		refused              string // the column that the text names; "": accepted
	}{
		{"mysql", "bigint(20)", "int(11)", ""},
		{"mysql", "bigint unsigned", "int unsigned", ""},
		{"mysql", "int", "smallint", ""},
		{"mysql", "double", "int", "max_id"},
		{"mysql", "float", "int", "max_id"},
		{"mysql", "decimal(20,0)", "int", "max_id"},
		{"mysql", "varchar(20)", "int", "max_id"},
		{"mysql", "bigint", "double", "step"},
		{"postgres", "bigint", "int", ""},
		{"postgres", "int", "smallint", ""},
		{"postgres", "double precision", "int", "max_id"},
		{"postgres", "numeric(30,0)", "int", "max_id"},
		{"postgres", "bigint", "real", "step"},
		{"sqlite", "INTEGER", "INT", ""},
		{"sqlite", "BIGINT(20)", "int", ""},
		{"sqlite", "REAL", "INTEGER", "max_id"},
		{"sqlite", "TEXT", "INTEGER", "max_id"},
	} {
		t.Run(strings.Join([]string{c.dialect, c.maxID, c.step}, "/"), func(t *testing.T) {
			t.Parallel()
			s := open(t, typed(t, c.dialect, c.maxID, c.step, "100, 7"))
			err := s.Bind(t.Context(), segment.Binding{Store: "default"})
			switch {
			case c.refused == "" && err != nil:
				t.Errorf("Bind: %v", err)
			case c.refused != "" && (!errors.Is(err, segment.ErrSchema) || !strings.Contains(err.Error(), "column "+c.refused) || strings.Contains(err.Error(), "schema apply")):
				t.Errorf("Bind: %v; want ErrSchema that names %s", err, c.refused)
			}
		})
	}
}

// TestUnreadableRow: a row that is no whole number of 64 bits gives no range and says so
// for its tag alone. leaf tag set corrects its step.
func TestUnreadableRow(t *testing.T) {
	for _, c := range []struct{ dialect, maxID, row string }{
		{"mysql", "bigint unsigned", "9223372036854775809, 7"},
		{"mysql", "bigint", "100, NULL"},
		{"mysql", "bigint", "NULL, 7"},
		{"postgres", "bigint", "100, NULL"},
		{"postgres", "bigint", "NULL, 7"},
		{"sqlite", "INTEGER", "100, NULL"},
		{"sqlite", "INTEGER", "1e300, 7"},
		{"sqlite", "INTEGER", "'x', 7"},
	} {
		t.Run(c.dialect+"/"+c.row, func(t *testing.T) {
			t.Parallel()
			s := open(t, typed(t, c.dialect, c.maxID, "int", c.row))
			if _, err := s.Lookup(t.Context(), "a"); !errors.Is(err, leaf.ErrInvalidRow) {
				t.Errorf("Lookup: %v; want ErrInvalidRow", err)
			}
			for _, step := range []int64{7, 0} {
				if res, err := s.Reserve(t.Context(), request(step)); !errors.Is(err, leaf.ErrInvalidRow) || res != (segment.Reservation{}) {
					t.Errorf("Reserve = %v, %v; want ErrInvalidRow", res, err)
				}
			}
			if c.row != "100, NULL" {
				return
			}
			id, step := int64(200), int64(7)
			if err := s.Update(t.Context(), "a", segment.Change{MaxID: &id, Step: &step}); !errors.Is(err, leaf.ErrInvalidRow) {
				t.Errorf("Update with a max_id: %v; want ErrInvalidRow, because the old one is not known", err)
			}
			if err := s.Update(t.Context(), "a", segment.Change{Step: &step}); err != nil {
				t.Errorf("Update of the step: %v", err)
			}
			if res, err := s.Reserve(t.Context(), request(7)); err != nil || res.Range != (leaf.Range{Lo: 100, Hi: 107}) {
				t.Errorf("Reserve with the new step = %v, %v", res, err)
			}
		})
	}
}
