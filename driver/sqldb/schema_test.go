package sqldb_test

import (
	"database/sql"
	"errors"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/worker"
)

// tables are all of them, in the order of the schema.
var tables = []string{
	"leaf_alloc", "leaf_tag_option", "leaf_client_option", "leaf_meta", "leaf_worker_namespace", "leaf_worker_bound", "leaf_worker", "leaf_worker_peer", "leaf_node",
	"leaf_repair", "leaf_repair_node", "leaf_audit", "leaf_token", "leaf_slot_namespace", "leaf_slot_bound", "leaf_slot",
}

// report is what ApplySchema says where the first tables exist.
func report(existing int) (lines []string) {
	for i, table := range tables {
		if i < existing {
			lines = append(lines, "table "+table+" exists, left as it is")
		} else {
			lines = append(lines, "table "+table+" created")
		}
	}
	return lines
}

func TestSchema(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"mysql", "postgres", "sqlite"} {
		text, err := sqldb.Schema(dialect)
		if err != nil || strings.Count(text, "CREATE TABLE IF NOT EXISTS leaf_") != len(tables) {
			t.Errorf("Schema(%q) = %q, %v", dialect, text, err)
		}
	}
	for _, dialect := range []string{"", "mariadb", "../schema/mysql"} {
		if text, err := sqldb.Schema(dialect); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("Schema(%q) = %q, %v; want ErrBadRequest", dialect, text, err)
		}
	}
}

// urls are one empty database per dialect.
var urls = []struct {
	name string
	url  func(t *testing.T) string
}{
	{"mysql", func(t *testing.T) string { return server.MariaDB(t).URL() }},
	{"postgres", func(t *testing.T) string { return server.Postgres(t).URL() }},
	{"sqlite", func(t *testing.T) string { return "sqlite:" + t.TempDir() + "/leaf.db" }},
}

func TestEmptyDatabase(t *testing.T) {
	for _, c := range urls {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := open(t, c.url(t))
			ctx := t.Context()
			for name, call := range map[string]func() error{
				"Lookup":       func() error { _, err := s.Lookup(ctx, "a"); return err },
				"Rows":         func() error { _, err := s.Rows(ctx); return err },
				"Create":       func() error { return s.Create(ctx, segment.NewRow{Tag: "a", Step: 1}) },
				"Update":       func() error { return s.Update(ctx, "a", segment.Change{}) },
				"Delete":       func() error { return s.Delete(ctx, "a") },
				"Raise":        func() error { _, err := s.Raise(ctx, "a", 1); return err },
				"ReturnUnused": func() error { return s.ReturnUnused(ctx, "a", 2, 1) },
				"Reserve": func() error {
					_, err := s.Reserve(ctx, segment.Request{Tag: "a", Step: 7, Length: 7, Min: 1, Max: 7})
					return err
				},
			} {
				err := call()
				if !errors.Is(err, segment.ErrSchema) || !strings.Contains(err.Error(), "leaf schema apply --store") || !strings.Contains(err.Error(), s.Redacted()) {
					t.Errorf("%s: %v; want ErrSchema that names the command", name, err)
				}
			}
			if c.name == "sqlite" {
				return // Bind creates the tables
			}
			if err := s.Bind(ctx, segment.Binding{Store: "default"}); !errors.Is(err, segment.ErrSchema) {
				t.Errorf("Bind: %v; want ErrSchema", err)
			}
		})
	}
}

func TestApplySchema(t *testing.T) {
	for _, c := range urls {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := open(t, c.url(t))
			for _, want := range [][]string{report(0), report(len(tables))} {
				got, err := s.ApplySchema(t.Context())
				if diff := gocmp.Diff(want, got); err != nil || diff != "" {
					t.Errorf("ApplySchema: %v (-want +got):\n%s", err, diff)
				}
			}
			bind(t, s)
		})
	}
}

// TestApplySchemaAtOnce: nodes that start together apply together.
func TestApplySchemaAtOnce(t *testing.T) {
	for _, c := range urls {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			url := c.url(t)
			errs := make(chan error)
			for range 8 {
				s := open(t, url)
				go func() {
					_, err := s.ApplySchema(t.Context())
					errs <- err
				}()
			}
			for range 8 {
				if err := <-errs; err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestApplySchemaWhileRunning: a store on the Java server's table notices that
// our tables were added.
func TestApplySchemaWhileRunning(t *testing.T) {
	t.Parallel()
	d := server.MariaDB(t)
	execAll(t, d.Open(t), javaTable("`desc` varchar(256) DEFAULT NULL, "),
		"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('a', 1, 7)")
	s := open(t, d.URL())
	bind(t, s)
	options := segment.Change{FixedStep: new(true)}
	if err := s.Update(t.Context(), "a", options); !errors.Is(err, segment.ErrSchema) {
		t.Fatalf("Update: %v; want ErrSchema", err)
	}
	want := report(1)
	got, err := open(t, d.URL()).ApplySchema(t.Context())
	ofJava := func(line string) bool {
		return strings.Contains(line, "if Java servers serve snowflake mode, start each node with --no-snowflake-enable")
	}
	if at := slices.IndexFunc(got, ofJava); at < 0 {
		t.Errorf("ApplySchema = %q; want what to do before nodes have worker IDs from there", got)
	} else {
		got = slices.Delete(got, at, at+1)
	}
	if diff := gocmp.Diff(want, got); err != nil || diff != "" {
		t.Fatalf("ApplySchema: %v (-want +got):\n%s", err, diff)
	}
	if err := s.Update(t.Context(), "a", options); err != nil {
		t.Errorf("Update after ApplySchema: %v", err)
	}
	rows, err := s.Rows(t.Context())
	if err != nil || len(rows) != 1 || !rows[0].Options.FixedStep {
		t.Errorf("Rows = %v, %v; want the option", rows, err)
	}
	// The columns stay those of the Java server.
	if _, err := d.Open(t).ExecContext(t.Context(), "UPDATE leaf_alloc SET `desc` = 'x'"); err != nil {
		t.Error(err)
	}
	execAll(t, d.Open(t), "ALTER TABLE leaf_alloc DROP COLUMN `desc`")
	if row, err := s.Lookup(t.Context(), "a"); err != nil || !row.Options.FixedStep {
		t.Errorf("Lookup after the column was dropped = %v, %v", row, err)
	}
}

// TestOptionsVanish: a store that has read options and limits does not take a table that is gone for tags and clients
// without them.
func TestOptionsVanish(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		s := open(t, url)
		bind(t, s)
		if err := s.Create(t.Context(), segment.NewRow{Tag: "a", Start: 1, Step: 7, Options: segment.Options{Order: segment.OrderStrict}}); err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{"leaf_tag_option", "leaf_client_option"} {
			if row, err := s.Lookup(t.Context(), "a"); err != nil || row.Options.Order != segment.OrderStrict {
				t.Fatalf("Lookup = %v, %v", row, err)
			}
			if _, err := s.Limits(t.Context()); err != nil {
				t.Fatal(err)
			}
			execAll(t, db, "ALTER TABLE "+table+" RENAME TO gone")
			_, limits := s.Limits(t.Context())
			errs := map[string]error{"Limits": limits}
			if table == "leaf_tag_option" {
				_, errs["Rows"] = s.Rows(t.Context())
				_, errs["Lookup"] = s.Lookup(t.Context(), "a")
			}
			for call, err := range errs {
				if !errors.Is(err, segment.ErrSchema) || !strings.Contains(err.Error(), "the table "+table+" is gone") {
					t.Errorf("%s without %s: %v; want ErrSchema", call, table, err)
				}
			}
			if _, err := open(t, url).Limits(t.Context()); err != nil {
				t.Errorf("Limits of a store that never saw %s: %v", table, err)
			}
			execAll(t, db, "ALTER TABLE gone RENAME TO "+table)
		}
	})
}

// TestStartWithoutOptions: the options of tags were lost before a node starts, in a database in which nodes have issued tags in
// strict order. The node does not start: it would issue such tags beside their owners.
func TestStartWithoutOptions(t *testing.T) {
	eachBase(t, func(t *testing.T, url string, db *sql.DB) {
		s := open(t, url)
		bind(t, s)
		if err := s.Create(t.Context(), segment.NewRow{Tag: "a", Start: 1, Step: 7}); err != nil {
			t.Fatal(err)
		}
		execAll(t, db, "ALTER TABLE leaf_tag_option RENAME TO gone")
		starts := func() (err error) {
			s := open(t, url)
			_, err = s.Rows(t.Context())
			return err
		}
		if err := starts(); err != nil {
			t.Errorf("a node in a database without tags in strict order: %v", err)
		}
		r := openSlots(t, s)
		if _, err := r.Namespace(t.Context(), &worker.StoredNamespace{Namespace: worker.Namespace{Name: "leaf", Fingerprint: "slots=64"}}); err != nil {
			t.Fatal(err)
		}
		if err := starts(); !errors.Is(err, segment.ErrSchema) || !strings.Contains(err.Error(), "restore the table from a backup") {
			t.Errorf("a node in a database with such tags: %v; want ErrSchema that says what to do", err)
		}
		if _, err := open(t, url).ApplySchema(t.Context()); err != nil {
			t.Errorf("leaf schema apply, after which all tags are in plain order: %v", err)
		}
		execAll(t, db, "DROP TABLE leaf_tag_option", "ALTER TABLE gone RENAME TO leaf_tag_option")
		if err := starts(); err != nil {
			t.Errorf("a node when the table is there again: %v", err)
		}
	})
}

func TestUnusableTable(t *testing.T) {
	for _, c := range []struct {
		name     string
		database func(t testing.TB) server.Database
		create   string
		want     string // in the error of Bind
	}{
		{"no update_time", server.MariaDB, "CREATE TABLE leaf_alloc (biz_tag varchar(128) PRIMARY KEY, max_id bigint, step int)", "update_time"},
		{"no step", server.Postgres, "CREATE TABLE leaf_alloc (biz_tag varchar(128) PRIMARY KEY, max_id bigint, update_time timestamp)", "step"},
		{"not transactional", server.MariaDB, "CREATE TABLE leaf_alloc (biz_tag varchar(128) PRIMARY KEY, max_id bigint, step int, update_time timestamp) ENGINE=MyISAM", "ENGINE=InnoDB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			d := c.database(t)
			execAll(t, d.Open(t), c.create)
			err := open(t, d.URL()).Bind(t.Context(), segment.Binding{Store: "default"})
			if !errors.Is(err, segment.ErrSchema) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("Bind: %v; want ErrSchema that names %q", err, c.want)
			}
		})
	}
}

func TestMissingDatabase(t *testing.T) {
	for _, d := range []func(t testing.TB) server.Database{server.MariaDB, server.Postgres} {
		s := open(t, d(t).Named("leaf_not_there").URL())
		if err := s.Bind(t.Context(), segment.Binding{Store: "default"}); !errors.Is(err, segment.ErrSchema) {
			t.Errorf("Bind to %s: %v; want ErrSchema", s.Redacted(), err)
		}
	}
}
