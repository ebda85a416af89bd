package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// TestRunTwice runs the example as a reader would, twice, on each kind of store.
func TestRunTwice(t *testing.T) {
	for name, url := range map[string]func(t *testing.T) string{
		"SQLite":  func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "leaf.db") },
		"MariaDB": func(t *testing.T) string { return database(t).URL() },
	} {
		t.Run(name, func(t *testing.T) {
			store, folder := url(t), t.TempDir()
			first := output(t, folder, store)
			if want := "1\n2\n3\n1500 more: [[4, 1504)]\n"; first != want {
				t.Errorf("first run printed %q, want %q", first, want)
			}
			second := output(t, folder, store)
			if want := "1504\n1505\n1506\n1500 more: [[1507, 3007)]\n"; second != want {
				t.Errorf("second run printed %q, want %q", second, want)
			}
		})
	}
}

// TestRowIsLost: where the row of a database that several programs use is gone, a program with a new folder, which cannot know
// what the others have issued, does not begin at 1 again.
func TestRowIsLost(t *testing.T) {
	d := database(t)
	output(t, t.TempDir(), d.URL())
	if _, err := d.Open(t).ExecContext(t.Context(), "DELETE FROM leaf_alloc"); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := run(t.Context(), &out, t.TempDir(), d.URL()); !errors.Is(err, leaf.ErrUnknownTag) || out.String() != "" {
		t.Errorf("printed %q, %v; want %v", out.String(), err, leaf.ErrUnknownTag)
	}
}

// database is one in which leaf schema apply and leaf tag create order have run.
func database(t *testing.T) server.Database {
	t.Helper()
	d := server.MariaDB(t)
	store, err := sqldb.Open(d.URL(), sqldb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if err := create(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	return d
}

func output(t *testing.T, folder, store string) string {
	t.Helper()
	var out strings.Builder
	if err := run(t.Context(), &out, folder, store); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
