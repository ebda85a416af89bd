package main_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNewest: the programs of a copy come before those of the system, and without a copy
// a mirror that does not answer ends the run where CI=true, and is said loudly elsewhere.
func TestNewest(t *testing.T) {
	t.Parallel()
	there := append(elsewhere(t), "LEAF_TEST_MYSQL_NEWEST=", "LEAF_TEST_MIRROR=http://127.0.0.1:1/debian")
	copied := t.TempDir()
	bin := filepath.Join(copied, "redis", "8.0-1", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{
		filepath.Join(bin, "which-copy"):          "#!/bin/sh\necho the newest\n",
		filepath.Join(copied, "redis", "current"): "8.0-1\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name, newest, folder, ci string
		want                     int
		out                      string // a part of what the run says
	}{
		{"a copy", "redis", copied, "true", 0, "the newest"},
		{"no mirror", "mysql", t.TempDir(), "", 0, "NOT TESTED: the newest mysql."},
		{"no mirror in CI", "mysql", t.TempDir(), "true", 1, "LEAF_TEST_MIRROR"},
		{"no such server", "oracle", copied, "true", 2, "mysql, postgres"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := start(t, append(slices.Clone(there), "LEAF_TEST_SERVERS="+tt.folder, "CI="+tt.ci),
				"-newest", tt.newest, "--", "sh", "-c", "which-copy >&2 || true")
			if got := r.wait(t); got != tt.want || !strings.Contains(r.stderr.String(), tt.out) {
				t.Errorf("exit code %d, want %d and %q\n%s", got, tt.want, tt.out, &r.stderr)
			}
			r.leftNothing(t)
		})
	}
}
