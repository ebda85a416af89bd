package datadir_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestErrorsNameTheFile: the error of a write that fails again and again is the same text each time,
// so that a log has it once. It names the file, and not the temporary one.
func TestErrorsNameTheFile(t *testing.T) {
	path := t.TempDir()
	d := open(t, path)
	if err := os.Mkdir(filepath.Join(path, "recent.json"), 0o700); err != nil {
		t.Fatal(err)
	}
	atRename := func() error { return d.Replace("recent.json", []byte("{}")) }
	atCreation := func() error { return d.Replace(strings.Repeat("x", 300), nil) }
	for _, fails := range []func() error{atRename, atCreation} {
		first, second := fails(), fails()
		if first == nil || second == nil || first.Error() != second.Error() || strings.Contains(first.Error(), ".tmp-") {
			t.Errorf("got %v, then %v", first, second)
		}
	}
	if err := atCreation(); !errors.Is(err, syscall.ENAMETOOLONG) {
		t.Errorf("the cause is lost: %v", err)
	}
	of := func(op string) error {
		return &fs.PathError{Op: op, Path: filepath.Join(path, "recent.json.tmp-123"), Err: syscall.EIO}
	}
	if err := d.Named("recent.json", of("write"), of("remove")); strings.Contains(err.Error(), ".tmp-") {
		t.Errorf("write and removal fail: %v", err)
	}
}
