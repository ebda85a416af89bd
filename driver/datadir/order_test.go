package datadir_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestOrderOfSyncs: what a power cut leaves depends on the order of these calls alone,
// and nothing else shows that one of them is missing.
func TestOrderOfSyncs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data")
	d := open(t, path)
	var calls []string
	d.Traced(func(call string) { calls = append(calls, call) })
	want := func(what string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, calls); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
		calls = nil
	}
	replaced := func(name string) []string {
		return []string{"write " + name + ".tmp-*", "sync " + name + ".tmp-*", "rename to " + name, "sync data"}
	}
	replace := func(name string) {
		t.Helper()
		if err := d.Replace(name, []byte("content")); err != nil {
			t.Fatal(err)
		}
	}
	replace("recent.json")
	want("Replace", replaced("recent.json")...)
	replace("fence")
	want("first Replace of a file that must never be missing", append(replaced("fence"), replaced("node.json")...)...)
	replace("fence")
	want("second Replace of it", replaced("fence")...)
	f, err := d.Append("fence")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("more")); err != nil {
		t.Fatal(err)
	}
	if err := f.Sync(); err != nil {
		t.Fatal(err)
	}
	want("Append", "write fence", "sync fence")
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
