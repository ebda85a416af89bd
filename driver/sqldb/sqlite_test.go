package sqldb_test

import (
	"database/sql"
	"database/sql/driver"
	"path/filepath"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/driver/drivertest"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/segment"
)

// open returns a store that is closed at the end of the test.
func open(t testing.TB, url string) *sqldb.Store {
	t.Helper()
	return openWith(t, url, sqldb.Config{ConnectTimeout: 10 * time.Second})
}

// openThrough is open with what faults puts between the store and the driver.
func openThrough(t testing.TB, url string, faults func(driver.Connector) driver.Connector) *sqldb.Store {
	t.Helper()
	return openWith(t, url, sqldb.WithFaults(sqldb.Config{ConnectTimeout: 10 * time.Second}, faults))
}

func openWith(t testing.TB, url string, cfg sqldb.Config) *sqldb.Store {
	t.Helper()
	s, err := sqldb.Open(url, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close %s: %v", s.Redacted(), err)
		}
	})
	return s
}

func bind(t testing.TB, s *sqldb.Store) {
	t.Helper()
	if err := s.Bind(t.Context(), segment.Binding{Store: "default"}); err != nil {
		t.Fatal(err)
	}
}

// raw returns a plain connection to a SQLite file.
func raw(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_busy_timeout=10000&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func sqliteBackend(t *testing.T) drivertest.Backend {
	path := filepath.Join(t.TempDir(), "leaf.db")
	s := open(t, "sqlite:"+path)
	if _, err := s.ApplySchema(t.Context()); err != nil { // Bind would claim the database
		t.Fatal(err)
	}
	db := raw(t, path)
	return drivertest.Backend{
		Store:  s,
		Record: recordRule(s),
		Put: func(t *testing.T, row segment.Row) {
			t.Helper()
			_, err := db.ExecContext(t.Context(), "REPLACE INTO leaf_alloc (biz_tag, max_id, step, update_time) VALUES (?, ?, ?, datetime(?, 'unixepoch'))",
				row.Tag, row.MaxID, row.Step, row.UpdateTime.Unix())
			if err != nil {
				t.Fatal(err)
			}
		},
		Lock: func(t *testing.T, _ string) func() {
			t.Helper()
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			return rollback(t, tx)
		},
		LocksAll: true,
		Other:    func(t *testing.T) drivertest.Store { return open(t, "sqlite:"+path) },
	}
}

func rollback(t *testing.T, tx *sql.Tx) func() {
	return func() {
		t.Helper()
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	}
}

func TestSQLite(t *testing.T) { drivertest.Run(t, sqliteBackend) }
