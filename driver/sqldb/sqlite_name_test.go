package sqldb_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// TestSQLiteOneName: a database that a process could open by two names is refused by both. SQLite finds
// the -wal by the name.
func TestSQLiteOneName(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, text string
		make, undo func(file, other string) error
		refused    []string // names
	}{
		{"hard link", "has 2 names", os.Link, remove, []string{"leaf.db", "other.db"}},
		{"symbolic link", "is a symbolic link", os.Symlink, remove, []string{"other.db"}},
		{"mount of a file", "is a mount of a single file", mountFile, unmountFile, []string{"other.db"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := filepath.Join(dir, "leaf.db")
			first := open(t, "sqlite:"+file)
			bind(t, first)
			if err := errors.Join(first.Create(t.Context(), segment.NewRow{Tag: "order", Start: 1, Step: 10}), first.Close()); err != nil {
				t.Fatal(err)
			}
			other := filepath.Join(dir, "other.db")
			if err := c.make(file, other); errors.Is(err, errors.ErrUnsupported) {
				t.Skipf("NOT TESTED: nothing can be mounted here, which needs root: %v", err)
			} else if err != nil {
				t.Fatal(err)
			}
			for _, name := range c.refused {
				_, err := open(t, "sqlite:"+filepath.Join(dir, name)).Reserve(t.Context(), segment.Request{Tag: "order", Min: 10, Max: 10})
				if !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), c.text) {
					t.Errorf("%s: %v", name, err)
				}
			}
			if err := c.undo(file, other); err != nil {
				t.Fatal(err)
			}
			if _, err := open(t, "sqlite:"+file).Rows(t.Context()); err != nil {
				t.Errorf("with one name again: %v", err)
			}
		})
	}
}

func remove(_, other string) error { return os.Remove(other) }

// mountFile mounts a file under another name, if the test may.
func mountFile(file, other string) error {
	if err := os.WriteFile(other, nil, 0o600); err != nil {
		return err
	}
	if out, err := exec.Command("mount", "--bind", file, other).CombinedOutput(); err != nil {
		return errors.Join(errors.ErrUnsupported, err, errors.New(string(out)))
	}
	return nil
}

// unmountFile undoes mountFile.
func unmountFile(_, other string) error {
	return errors.Join(exec.Command("umount", "--lazy", other).Run(), os.Remove(other))
}
