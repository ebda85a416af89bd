package app_test

import (
	"errors"
	"testing"

	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/internal/app"
)

// TestUndoKeepsTheLock: an engine that did not end may still write to the data
// directory, so no other process may open it.
func TestUndoKeepsTheLock(t *testing.T) {
	t.Parallel()
	for _, hangs := range []bool{true, false} {
		path := t.TempDir()
		dir, err := datadir.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = dir.Close() })
		failed := errors.New("the engine did not end")
		err = app.Undo(dir, func() error {
			if hangs {
				return failed
			}
			return nil
		})
		if hangs != errors.Is(err, failed) {
			t.Errorf("undo: %v", err)
		}
		other, err := datadir.Open(path)
		if _, locked := errors.AsType[*datadir.LockedError](err); locked != hangs {
			t.Errorf("an engine hangs: %v; a second process opens the directory: %v", hangs, err)
		}
		if err == nil {
			_ = other.Close()
		}
	}
}
