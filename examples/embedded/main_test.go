package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// TestRunTwice runs the example as a reader would, twice, on each kind of store.
func TestRunTwice(t *testing.T) {
	for name, url := range map[string]func(t *testing.T) string{
		"SQLite":  func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "leaf.db") },
		"MariaDB": func(t *testing.T) string { return server.MariaDB(t).URL() },
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

func output(t *testing.T, folder, store string) string {
	t.Helper()
	var out strings.Builder
	if err := run(t.Context(), &out, folder, store); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
