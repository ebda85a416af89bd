//go:build unix

package sqldb_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/leaf-idgen/leaf/segment"
)

// TestSQLiteFileBelongsToTheOwner: a command that root runs beside the node of another user, such
// as leaf schema apply, must not leave a database that the node cannot open.
func TestSQLiteFileBelongsToTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	t.Parallel()
	const owner = 65534
	folder := filepath.Join(t.TempDir(), "d")
	if err := errors.Join(os.Mkdir(folder, 0o700), os.Chown(folder, owner, owner)); err != nil {
		t.Fatal(err)
	}
	s := open(t, "sqlite:"+filepath.Join(folder, "leaf.db"))
	if err := s.Bind(t.Context(), segment.Binding{Store: "default"}); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 3 {
		t.Fatalf("%v, %v; want leaf.db with its -wal and -shm", entries, err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if is := info.Sys().(*syscall.Stat_t); is.Uid != owner || is.Gid != owner {
			t.Errorf("%s belongs to %d:%d", e.Name(), is.Uid, is.Gid)
		}
	}
}
