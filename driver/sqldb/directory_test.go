package sqldb_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/driver/drivertest"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/segment"
)

// openDirectory returns a directory that is closed at the end of the test.
func openDirectory(t testing.TB, url string) *sqldb.Directory {
	t.Helper()
	d, err := sqldb.OpenDirectory(url, sqldb.Config{ConnectTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// directoryBackend is a directory that is opened with url, and which db reaches past it.
func directoryBackend(t *testing.T, url string, db *sql.DB) drivertest.DirectoryBackend {
	t.Helper()
	return drivertest.DirectoryBackend{
		Directory: openDirectory(t, url),
		Other:     func(t *testing.T) discovery.Directory { return openDirectory(t, url) },
		Plant: func(t *testing.T, id, text string) {
			t.Helper()
			plant(t, db, id, text, math.MaxInt64)
		},
	}
}

func plant(t testing.TB, db *sql.DB, id, text string, expires int64) {
	t.Helper()
	execAll(t, db, fmt.Sprintf("INSERT INTO leaf_node (id, entry, expires) VALUES ('%s', '%s', %d)", id, text, expires))
}

func serverDirectory(t *testing.T, f flavour) {
	t.Parallel()
	d := f.database(t)
	applySchema(t, d.URL()) // once: it takes seconds
	db := d.Open(t)
	drivertest.RunDirectory(t, func(t *testing.T) drivertest.DirectoryBackend {
		execAll(t, db, "DELETE FROM leaf_node")
		w := startWire(t, d)
		b := directoryBackend(t, d.Via(w.Addr()).URL(), db)
		b.Block = func(*testing.T) func() { w.Freeze(); return w.Heal }
		return b
	})
}

func TestDirectoryMariaDB(t *testing.T) { serverDirectory(t, named("mysql")) }

func TestDirectoryPostgres(t *testing.T) { serverDirectory(t, named("postgres")) }

func TestDirectorySQLite(t *testing.T) {
	t.Parallel()
	drivertest.RunDirectory(t, func(t *testing.T) drivertest.DirectoryBackend {
		path := filepath.Join(t.TempDir(), "leaf.db")
		applySchema(t, "sqlite:"+path)
		return directoryBackend(t, "sqlite:"+path, raw(t, path))
	})
}

func node(id string) discovery.Node {
	return discovery.Node{ID: id, Weight: 1, HTTP: "10.0.0.1:8080"}
}

// TestDirectoryNoTable: the error names the command, and a database of our own needs none.
func TestDirectoryNoTable(t *testing.T) {
	for _, c := range urls {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := c.url(t)
			d := openDirectory(t, url)
			_, errList := d.List(t.Context())
			errs := map[string]error{"List": errList, "Remove": d.Remove(t.Context(), "n1")}
			if c.name == "sqlite" {
				if err := d.Put(t.Context(), node("n1"), time.Minute); err != nil {
					t.Errorf("Put: %v", err)
				}
				if got, err := d.List(t.Context()); err != nil || len(got) != 1 {
					t.Errorf("List = %+v, %v", got, err)
				}
			} else {
				errs["Put"] = d.Put(t.Context(), node("n1"), time.Minute)
			}
			for call, err := range errs {
				if !errors.Is(err, segment.ErrSchema) || !strings.Contains(err.Error(), "leaf schema apply --store") {
					t.Errorf("%s: %v; want ErrSchema that names the command", call, err)
				}
			}
			applySchema(t, url)
			if err := d.Put(t.Context(), node("n1"), time.Minute); err != nil {
				t.Errorf("Put once the table is there: %v", err)
			}
		})
	}
}

// TestDirectoryOfAFileThatLostTables: a node whose SQLite file has lost the table of nodes makes no table again. The table of
// options may be lost too: a new one is empty, and takes order and limits from all tags.
func TestDirectoryOfAFileThatLostTables(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leaf.db")
	s := open(t, "sqlite:"+path)
	if err := s.Bind(t.Context(), segment.Binding{Store: "default"}); err != nil {
		t.Fatal(err)
	}
	row := segment.NewRow{Tag: "order", Start: 1, Step: 10, Options: segment.Options{Order: segment.OrderStrict}}
	if err := s.Create(t.Context(), row); err != nil {
		t.Fatal(err)
	}
	d, err := s.Directory()
	if err != nil {
		t.Fatal(err)
	}
	execAll(t, raw(t, path), "DROP TABLE leaf_tag_option", "DROP TABLE leaf_node")
	if err := d.Put(t.Context(), node("n1"), time.Minute); !errors.Is(err, segment.ErrSchema) {
		t.Errorf("Put: %v; want ErrSchema", err)
	}
	if rows, err := s.Rows(t.Context()); !errors.Is(err, segment.ErrSchema) {
		t.Errorf("Rows without the options: %+v, %v; want ErrSchema", rows, err)
	}
}

// TestDirectorySweep: what ended long ago is deleted, not all of it at once, and
// nothing else.
func TestDirectorySweep(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		const old = 130
		now := time.Now().UnixMilli()
		for i := range old {
			plant(t, db, fmt.Sprintf("old%d", i), "x", int64(i))
		}
		plant(t, db, "ended", "x", now-60_000)
		plant(t, db, "ahead", "x", now+60_000)
		rows := func(where string) (n int) {
			t.Helper()
			if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM leaf_node WHERE "+where).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		d := openDirectory(t, url)
		for range 3 {
			if err := d.Put(t.Context(), node("n1"), time.Minute); err != nil {
				t.Fatal(err)
			}
			if n := rows("id LIKE 'old%'"); n != old-100 {
				t.Errorf("%d of %d old entries are left, want %d", n, old, old-100)
			}
		}
		if err := openDirectory(t, url).Put(t.Context(), node("n2"), time.Minute); err != nil {
			t.Fatal(err)
		}
		if n := rows("id LIKE 'old%'"); n != 0 {
			t.Errorf("%d old entries are left after a second node has swept", n)
		}
		if n := rows("id NOT LIKE 'old%'"); n != 4 {
			t.Errorf("%d entries are left, want ended, ahead, n1 and n2", n)
		}
	})
}

// TestDirectoryOfStore: it shares the database of a store, and outlives nothing but
// itself.
func TestDirectoryOfStore(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		var log bytes.Buffer
		s, err := sqldb.Open(url, sqldb.Config{ConnectTimeout: 10 * time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		d, err := s.Directory()
		if err != nil {
			t.Fatal(err)
		}
		plant(t, db, "x", "garbage", math.MaxInt64)
		if err := d.Put(t.Context(), node("n1"), time.Minute); err != nil {
			t.Fatal(err)
		}
		if got, err := d.List(t.Context()); err != nil || len(got) != 1 {
			t.Errorf("List = %+v, %v", got, err)
		}
		if text := log.String(); !strings.Contains(text, "level=ERROR") || !strings.Contains(text, "leaf_node id=x") || strings.Contains(text, "xxxxx@") != strings.Contains(s.Redacted(), "xxxxx@") {
			t.Errorf("log: %s", text)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
		if _, err := s.Rows(t.Context()); err != nil {
			t.Errorf("the store after the directory was closed: %v", err)
		}
	})
}
