package sqldb_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/worker"
)

// TestIdentify: the first node that brings an ID gives it to the registry, and all others hear of it.
func TestIdentify(t *testing.T) {
	for name, place := range map[string]func(t *testing.T) string{
		"mysql":    func(t *testing.T) string { t.Helper(); return server.MariaDB(t).URL() },
		"postgres": func(t *testing.T) string { t.Helper(); return server.Postgres(t).URL() },
		"sqlite":   func(t *testing.T) string { t.Helper(); return "sqlite:" + filepath.Join(t.TempDir(), "leaf.db") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := place(t)
			if id, err := openRecords(t, url).Identify(t.Context(), "ours"); id != "" || err != nil {
				t.Errorf("before there are tables: %q, %v; want none", id, err)
			}
			applySchema(t, url)
			a, b := openRecords(t, url), openRecords(t, url)
			for _, step := range []struct{ id, want string }{{"", ""}, {"ours", "ours"}, {"theirs", "ours"}, {"", "ours"}} {
				for _, r := range []*sqldb.Records{a, b} {
					if id, err := r.Identify(t.Context(), step.id); id != step.want || err != nil {
						t.Errorf("with %q: %q, %v; want %q", step.id, id, err, step.want)
					}
				}
			}
		})
	}
}

// TestIdentifyWithoutRight: an administrator has granted what a registry needed before it had an ID. A node goes on without one,
// or could claim nothing.
func TestIdentifyWithoutRight(t *testing.T) {
	for dialect, database := range map[string]func(t testing.TB) server.Database{"mysql": server.MariaDB, "postgres": server.Postgres} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			d := database(t)
			applySchema(t, d.URL())
			admin := d.Open(t)
			user := makeUser(t, admin, d)
			table := func(name string) string {
				if dialect == "mysql" {
					return d.Name() + "." + name
				}
				return name
			}
			grant := func(rights string) {
				t.Helper()
				execAll(t, admin, "GRANT "+rights+" ON "+table("leaf_meta")+" TO "+user)
			}
			identify := func() (string, error) {
				return openRecords(t, as(t, d, strings.Trim(user, `"'`), "secret")).Identify(t.Context(), "ours")
			}
			if dialect == "mysql" { // a user without any right does not see the database
				execAll(t, admin, "GRANT SELECT ON "+d.Name()+".leaf_worker TO "+user)
			}
			if id, err := identify(); id != "" || err != nil {
				t.Errorf("without a right: %q, %v; want none", id, err)
			}
			if dialect == "mysql" { // on PostgreSQL such a user does not see the columns of the tables either, and claims nothing
				blind := openRecords(t, as(t, d, strings.Trim(user, `"'`), "secret"))
				if _, err := blind.Identify(t.Context(), "ours"); err != nil {
					t.Fatal(err)
				}
				if err := blind.Expect("ours"); err != nil {
					t.Fatal(err)
				}
				for _, name := range []string{"leaf_worker_bound", "leaf_worker"} {
					execAll(t, admin, "GRANT SELECT ON "+table(name)+" TO "+user)
				}
				if _, err := blind.List(t.Context()); err != nil {
					t.Errorf("the records without a right to the ID: %v", err)
				}
			}
			grant("SELECT")
			if id, err := identify(); id != "" || err != nil {
				t.Errorf("without the right to make one: %q, %v; want none", id, err)
			}
			execAll(t, admin, "INSERT INTO leaf_meta (name, value) VALUES ('cluster_id', 'theirs')")
			if id, err := identify(); id != "theirs" || err != nil {
				t.Errorf("with the right to read: %q, %v; want that of the registry", id, err)
			}
		})
	}
}

// TestIdentifyBesideAStore: the ID of the registry in a store is that of the cluster, and stays what it was when the database
// loses it. While the table of it is gone, the registry's question does not let the store take ranges there (rule K).
func TestIdentifyBesideAStore(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		own, err := open(t, url).Records()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = own.Close() })
		if made, err := own.Identify(t.Context(), "of the registry before"); len(made) != len(otherID) || err != nil {
			t.Errorf("a store without an ID: %q, %v; want that of a cluster", made, err)
		}
		s, id := changing(t, url, db)
		r, err := s.Records()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = r.Close() })
		for _, loss := range []string{"SELECT 1", "DELETE FROM leaf_meta WHERE name = 'cluster_id'", "DROP TABLE leaf_meta"} {
			execAll(t, db, loss)
			if found, err := r.Identify(t.Context(), ""); found != id || err != nil {
				t.Errorf("after %s: ID %q, %v; want %q", loss, found, err, id)
			}
		}
		if res, err := s.Reserve(t.Context(), segment.Request{Tag: "order", Step: 1000, Length: 500, Min: 500, Max: 500}); !errors.Is(err, segment.ErrSchema) {
			t.Errorf("Reserve without leaf_meta = %+v, %v; want ErrSchema", res, err)
		}
	})
}

// TestIdentityOfARegistryIsLost: no text says to make the table of its ID with a data directory, which has the ID of a store.
func TestIdentityOfARegistryIsLost(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		changing(t, url, db)
		r := openRecords(t, url)
		id, err := r.Identify(t.Context(), "")
		if err != nil || id == "" {
			t.Fatalf("ID %q, %v; want one", id, err)
		}
		if err := r.Expect(id); err != nil {
			t.Fatal(err)
		}
		execAll(t, db, "DROP TABLE leaf_meta")
		if _, err = r.List(t.Context()); !errors.Is(err, worker.ErrSchema) || strings.Contains(err.Error(), "--data-dir") {
			t.Errorf("%v; want ErrSchema, and nothing of a data directory", err)
		}
	})
}
