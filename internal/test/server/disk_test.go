package server_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

func TestDisk(t *testing.T) {
	t.Parallel()
	d := server.OwnDisk(t, 1<<20)
	file := filepath.Join(d.Path(), "file")
	write := func(bytes int) error { return os.WriteFile(file, make([]byte, bytes), 0o600) }
	if err := write(100_000); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := d.Fill(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file+"-2", []byte("x"), 0o600); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("one byte on a full disk: %v, want no space", err)
		}
		for range 2 {
			if err := d.Free(); err != nil {
				t.Fatal(err)
			}
		}
		if err := write(900_000); err != nil {
			t.Errorf("after Free: %v", err)
		}
	}
	if err := write(1_100_000); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("more than the disk holds: %v, want no space", err)
	}
}

// TestServerOnAFullDisk: a server whose data folder is full refuses to write (and
// may end, because its redo log has no space either), and comes back with all
// that it had when there is space again.
func TestServerOnAFullDisk(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	server.Require(t)
	d := server.OwnDisk(t, 256<<20)
	i, err := server.StartMariaDB(t.Context(), d.Path())
	if err != nil {
		t.Fatal(err)
	}
	defer i.Close()
	db := i.Open(t)
	mustExec(t, db, "CREATE TABLE t (v longblob)")
	const insert = "INSERT INTO t VALUES (REPEAT('x', 8000000))"
	mustExec(t, db, insert)
	if err := d.Fill(); err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), insert); err == nil {
		t.Error("8 MB were written to a full disk")
	}
	if err := d.Free(); err != nil {
		t.Fatal(err)
	}
	if err := i.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustExec(t, db, insert)
	if got := rows(t, db); got != 2 {
		t.Errorf("%d rows, want 2", got)
	}
}
