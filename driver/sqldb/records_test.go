package sqldb_test

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/worker"
)

// bases are one database per dialect, with its tables and with raw access.
var bases = []struct {
	name string
	base func(t *testing.T) (url string, db *sql.DB)
}{
	{"mysql", func(t *testing.T) (string, *sql.DB) { d := server.MariaDB(t); return d.URL(), d.Open(t) }},
	{"mysql itself", func(t *testing.T) (string, *sql.DB) { d := server.MySQL(t); return d.URL(), d.Open(t) }},
	{"postgres", func(t *testing.T) (string, *sql.DB) { d := server.Postgres(t); return d.URL(), d.Open(t) }},
	{"sqlite", func(t *testing.T) (string, *sql.DB) {
		path := filepath.Join(t.TempDir(), "leaf.db")
		return "sqlite:" + path, raw(t, path)
	}},
}

func eachBase(t *testing.T, run func(t *testing.T, url string, db *sql.DB)) {
	for _, b := range bases {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			url, db := b.base(t)
			applySchema(t, url)
			run(t, url, db)
		})
	}
}

// TestNamespaceOnce: of many that create the namespace one does, and all see its.
func TestNamespaceOnce(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, _ *sql.DB) {
		const n = 32
		if got, err := openRecords(t, url).Namespace(t.Context(), nil); err != nil || got != nil {
			t.Fatalf("Namespace of an empty database = %+v, %v", got, err)
		}
		seen := make([]worker.StoredNamespace, n)
		var group sync.WaitGroup
		for i := range n {
			s := openRecords(t, url)
			group.Go(func() {
				got, err := s.Namespace(t.Context(), &worker.StoredNamespace{
					Namespace: worker.Namespace{Name: fmt.Sprint("name ", i), Fingerprint: fmt.Sprint("layout ", i)}, IssueFrom: int64(i),
				})
				if err != nil {
					t.Errorf("Namespace: %v", err)
					return
				}
				seen[i] = *got
			})
		}
		group.Wait()
		for _, got := range seen {
			if got != seen[0] || got.Name != fmt.Sprint("name ", got.IssueFrom) || got.Fingerprint != fmt.Sprint("layout ", got.IssueFrom) {
				t.Errorf("%+v and %+v", got, seen[0])
			}
		}
	})
}

// TestNamespaceWithoutIncarnation: leaf schema apply adds the columns incarnation and given to the
// namespace of an older program. The next claim gives it an incarnation. So what is given since is
// counted, and a number whose record was deleted is not taken at once beside its live owner.
func TestNamespaceWithoutIncarnation(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		execAll(t, db, "INSERT INTO leaf_worker_namespace (id, name, fingerprint, issue_from) VALUES (1, 'prod', 'f', 0)")
		const now, quiet = int64(1_763_000_000_000), int64(80_000)
		claim := func(nonce string) worker.Record {
			t.Helper()
			r, err := worker.NewPool(openRecords(t, url)).Claim(t.Context(), worker.Request{
				Namespace: worker.Namespace{Name: "prod", Fingerprint: "f"}, Address: nonce + ":8080", Nonce: nonce,
				Numbers: leaf.Range{Lo: 7, Hi: 8}, Now: now, Bound: now + 60_000, Margin: 5000, Quiet: now + quiet,
			})
			if err != nil {
				t.Fatalf("Claim: %v", err)
			}
			return r
		}
		if r := claim("first"); r.Incarnation == "" || r.Floor > now {
			t.Errorf("first claim = %+v; want one with an incarnation, of use at once", r)
		}
		execAll(t, db, "DELETE FROM leaf_worker", "DELETE FROM leaf_worker_bound")
		if r := claim("second"); r.Floor < now+quiet {
			t.Errorf("claim of a number whose record was deleted = %+v; its owner may issue until %d", r, now+quiet)
		}
	})
}

func TestRecordsEmptyDatabase(t *testing.T) {
	for _, b := range bases {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			url, _ := b.base(t)
			s := openRecords(t, url)
			ctx := t.Context()
			for name, call := range map[string]func() error{
				"Namespace": func() error { _, err := s.Namespace(ctx, &worker.StoredNamespace{}); return err },
				"List":      func() error { _, err := s.List(ctx); return err },
				"Put":       func() error { _, err := s.Put(ctx, first()); return err },
				"Announce":  func() error { return s.Announce(ctx, worker.Peer{}) },
				"Withdraw":  func() error { return s.Withdraw(ctx, worker.Peer{}) },
				"Peers":     func() error { _, err := s.Peers(ctx); return err },
			} {
				err := call()
				if !errors.Is(err, worker.ErrSchema) || !strings.Contains(err.Error(), "if Java servers serve snowflake mode, start each node with --no-snowflake-enable") ||
					!strings.Contains(err.Error(), "leaf schema apply --store") || !strings.Contains(err.Error(), s.Redacted()) {
					t.Errorf("%s: %v; want ErrSchema that names the command, and what to do beside Java servers", name, err)
				}
			}
		})
	}
}

// TestRecordsWithoutAKey: a restore beside running nodes leaves a table without its key, because a node has written a row
// before the restore did. The text says what makes the registry whole, and the numbers then wait as after a wipe.
func TestRecordsWithoutAKey(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		ctx := t.Context()
		s := openRecords(t, url)
		want := &worker.StoredNamespace{Namespace: worker.Namespace{Name: "prod", Fingerprint: "f"}}
		if _, err := s.Namespace(ctx, want); err != nil {
			t.Fatal(err)
		}
		execAll(t, db, "CREATE TABLE spare AS SELECT * FROM leaf_worker_namespace", "DROP TABLE leaf_worker_namespace",
			"CREATE TABLE leaf_worker_namespace AS SELECT * FROM spare", "INSERT INTO leaf_worker_namespace SELECT * FROM spare", "DROP TABLE spare")
		_, err := s.Namespace(ctx, want)
		said := regexp.MustCompile(`drop the tables (\w+), (\w+) and (\w+), run leaf schema apply`).FindStringSubmatch(fmt.Sprint(err))
		if !errors.Is(err, worker.ErrSchema) || said == nil {
			t.Fatalf("a namespace with two rows: %v; want ErrSchema with the tables to drop", err)
		}
		for _, table := range said[1:] {
			execAll(t, db, "DROP TABLE "+table)
		}
		applySchema(t, url)
		s = openRecords(t, url)
		if _, err := s.Namespace(ctx, want); err != nil {
			t.Errorf("after what the text says: %v", err)
		}
		if _, err := db.ExecContext(ctx, "INSERT INTO leaf_worker_namespace SELECT * FROM leaf_worker_namespace"); err == nil {
			t.Error("the tables have no key again")
		}
	})
}

// TestRecordsRefuses: what a column cannot hold is refused alike by all databases.
func TestRecordsRefuses(t *testing.T) {
	t.Parallel()
	s := openRecords(t, "sqlite:"+t.TempDir()+"/leaf.db")
	long := strings.Repeat("я", 256)
	for _, text := range []string{long, "\xff", "a\x00b"} {
		r := first()
		r.Address = text
		if _, err := s.Put(t.Context(), r); !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), "address=") {
			t.Errorf("Put with the address %q: %v; want ErrBadRequest", text, err)
		}
		if err := s.Announce(t.Context(), worker.Peer{Clock: text}); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("Announce with the clock %q: %v; want ErrBadRequest", text, err)
		}
		if _, err := s.Namespace(t.Context(), &worker.StoredNamespace{Namespace: worker.Namespace{Name: text}}); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("Namespace %q: %v; want ErrBadRequest", text, err)
		}
	}
	if _, err := sqldb.OpenRecords("sqlite:leaf.db", sqldb.Config{Lease: -1}); !errors.Is(err, leaf.ErrBadRequest) {
		t.Errorf("OpenRecords with a negative lease: %v; want ErrBadRequest", err)
	}
	if _, err := sqldb.OpenRecords("oracle:x", sqldb.Config{}); !errors.Is(err, leaf.ErrBadRequest) {
		t.Errorf("OpenRecords of another database: %v; want ErrBadRequest", err)
	}
}

// TestNotTransactional: without transactions claim and T would not be one.
func TestNotTransactional(t *testing.T) {
	t.Parallel()
	d := server.MariaDB(t)
	applySchema(t, d.URL())
	execAll(t, d.Open(t), "ALTER TABLE leaf_worker_bound ENGINE=MyISAM")
	if _, err := openRecords(t, d.URL()).Namespace(t.Context(), nil); !errors.Is(err, worker.ErrSchema) || !strings.Contains(err.Error(), "ENGINE=InnoDB") {
		t.Errorf("Namespace: %v; want ErrSchema that names the engine", err)
	}
}

// TestPeersByDatabaseClock: an announcement ends by the database's clock, and is
// deleted long after.
func TestPeersByDatabaseClock(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		execAll(t, db, "INSERT INTO leaf_worker_peer (nonce, address, clock, number, expires) VALUES ('old', 'a', 'b', 1, 1), ('ahead', 'c', 'd', 2, 9000000000000)")
		execAll(t, db, fmt.Sprintf("INSERT INTO leaf_worker_peer (nonce, address, clock, number, expires) VALUES ('ended', 'e', 'f', 4, %d)", time.Now().UnixMilli()-1000))
		s := openRecords(t, url)
		me := worker.Peer{Address: "10.0.0.1:8080", Clock: "10.0.0.1:8081", Nonce: "mine", Number: 3}
		before := time.Now().UnixMilli()
		if err := s.Announce(t.Context(), me); err != nil {
			t.Fatal(err)
		}
		var expires int64
		if err := db.QueryRowContext(t.Context(), "SELECT expires FROM leaf_worker_peer WHERE nonce = 'mine'").Scan(&expires); err != nil {
			t.Fatal(err)
		}
		if lease := expires - 2000; lease < before-2 || lease > time.Now().UnixMilli()+2 {
			t.Errorf("announced at %d by this machine's clock until %d; want a lease of 2 s", before, expires)
		}
		if all, err := s.Peers(t.Context()); err != nil || len(all) != 2 {
			t.Errorf("Peers = %+v, %v; want two", all, err)
		}
		var rows int
		if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM leaf_worker_peer").Scan(&rows); err != nil || rows != 3 {
			t.Errorf("%d rows, %v; want only the one that ended long ago to be gone", rows, err)
		}
	})
}
