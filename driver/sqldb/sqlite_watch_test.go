package sqldb_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/segment"
)

// TestSQLiteFilesLost: what another process begins with, after a file of the database
// lost its name under this one, holds every range that this one was given; and this one
// notices.
func TestSQLiteFilesLost(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string][]string{"wal": {"-wal"}, "shm": {"-shm"}, "both": {"-wal", "-shm"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "leaf.db")
			s := open(t, "sqlite:"+path)
			bind(t, s)
			if err := s.Create(t.Context(), segment.NewRow{Tag: "tag", Start: 1, Step: 7}); err != nil {
				t.Fatal(err)
			}
			var own leaf.Range
			for range 3 {
				res, err := s.Reserve(t.Context(), segment.Request{Tag: "tag", Step: 7, Length: 7, Min: 1, Max: 7})
				if err != nil {
					t.Fatal(err)
				}
				own = res.Range
			}
			if err := s.CheckFile(); err != nil {
				t.Fatal(err)
			}
			for _, end := range ends {
				if err := os.Remove(path + end); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.CheckFile(); !errors.Is(err, sqldb.ErrFileLost) {
				t.Errorf("CheckFile = %v, want ErrFileLost", err)
			}
			for range 2 { // with the connections that are open, then with new ones
				_, _ = s.Rows(t.Context())
				if res, err := s.Reserve(t.Context(), segment.Request{Tag: "tag", Step: 7, Length: 7, Min: 1, Max: 7}); err == nil {
					t.Errorf("%v was reserved after the files were lost", res.Range)
				}
			}
			for _, end := range ends {
				if _, err := os.Stat(path + end); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the %s was made anew beside the one that other processes have open: %v", end, err)
				}
			}
			ranges := make(chan leaf.Range, 3)
			if err := child(t.Context(), path, 1, 3, ranges); err != nil {
				t.Fatal(err)
			}
			if first := <-ranges; first.Lo < own.Hi {
				t.Errorf("another process was given %v after this one was given %v", first, own)
			}
			if err := s.CheckFile(); !errors.Is(err, sqldb.ErrFileLost) {
				t.Errorf("CheckFile = %v once the files are there again, want ErrFileLost for ever", err)
			}
		})
	}
}

// TestSQLiteFilesStay: connections that come and go, of this and of other stores, lose
// nothing.
func TestSQLiteFilesStay(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "leaf.db")
	s := open(t, "sqlite:"+path)
	bind(t, s)
	for range 20 {
		other, err := sqldb.Open("sqlite:"+path, sqldb.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := other.Rows(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(other.CheckFile(), other.Close(), other.CheckFile(), s.CheckFile()); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSQLiteDurability reads from the writer's connection itself what its commits rest
// on: nothing else shows a sync that is missing.
func TestSQLiteDurability(t *testing.T) {
	t.Parallel()
	s := open(t, "sqlite:"+filepath.Join(t.TempDir(), "leaf.db"))
	bind(t, s)
	for pragma, want := range map[string]string{
		"journal_mode": "wal", "synchronous": "2", "fullfsync": "1", "checkpoint_fullfsync": "1", "wal_autocheckpoint": "1",
	} {
		var got string
		if err := s.Writer().QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
			t.Errorf("PRAGMA %s = %q, %v; want %q", pragma, got, err, want)
		}
	}
}

// TestSQLiteFilesOfOthers: a connection that was made before the file was in WAL mode
// does not miss a -wal that others made and took away.
func TestSQLiteFilesOfOthers(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "leaf.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, "sqlite:"+path)
	if _, err := s.Rows(t.Context()); !errors.Is(err, segment.ErrSchema) { // through a connection that only reads
		t.Fatalf("Rows of an empty file: %v; want ErrSchema", err)
	}
	other, err := sqldb.Open("sqlite:"+path, sqldb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Bind(t.Context(), segment.Binding{Store: "default"}); err != nil {
		t.Fatal(err)
	}
	if err := s.CheckFile(); err != nil {
		t.Error(err)
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("the last connection left the -wal: %v", err)
	}
	if err := s.CheckFile(); err != nil {
		t.Errorf("a -wal that this process never opened is missed: %v", err)
	}
}
