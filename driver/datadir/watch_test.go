package datadir_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// used returns a folder in which a node runs, with the files that it keeps there.
func used(t *testing.T) (d *datadir.Dir, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "data")
	d = open(t, path)
	for _, name := range []string{"fence", "fence-end", "worker.json", "recent.json"} {
		for range 2 {
			if err := errors.Join(d.Replace(name, []byte("1")), d.Check()); err != nil {
				t.Fatal(err)
			}
		}
	}
	return d, path
}

// usedAgain is the same after a restart: the files were read and nothing was written yet.
func usedAgain(t *testing.T) (d *datadir.Dir, path string) {
	t.Helper()
	d, path = used(t)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	d = open(t, path)
	for _, name := range []string{"fence", "fence-end", "worker.json"} {
		for range 2 {
			if _, err := d.ReadFile(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	return d, path
}

func TestCheckFindsLostFiles(t *testing.T) {
	t.Run("written", func(t *testing.T) { checkFindsLostFiles(t, used) })
	t.Run("read", func(t *testing.T) { checkFindsLostFiles(t, usedAgain) })
}

func checkFindsLostFiles(t *testing.T, used func(*testing.T) (*datadir.Dir, string)) {
	t.Helper()
	anew := func(path string) error {
		content, err := os.ReadFile(path)
		return errors.Join(err, os.Remove(path), os.WriteFile(path, content, 0o600))
	}
	moved := func(path string) error { return os.Rename(path, path+"-away") }
	for _, name := range []string{"lock", "node.json", "fence", "fence-end", "worker.json", ""} {
		for how, harm := range map[string]func(string) error{
			"deleted": os.RemoveAll, "moved": moved, "written anew": anew, "a link": func(path string) error {
				return errors.Join(moved(path), os.Symlink(path+"-away", path))
			},
		} {
			if name == "" && (how == "written anew" || how == "a link") {
				continue // a folder; a link to it is what the administrator may have chosen
			}
			t.Run(name+" "+how, func(t *testing.T) {
				d, path := used(t)
				file := filepath.Join(path, name)
				if err := harm(file); err != nil {
					t.Fatal(err)
				}
				err := d.Check()
				if _, ok := errors.AsType[*datadir.LostError](err); !ok || !strings.Contains(err.Error(), file) {
					t.Fatalf("Check = %v, want a LostError that names %s", err, file)
				}
				if err := d.Replace("fence", []byte("2")); err == nil {
					t.Error("a file is written after the folder lost one")
				}
				if _, err := d.Append("fence"); err == nil {
					t.Error("a file is opened for writing after the folder lost one")
				}
				if how == "moved" {
					if err := os.Rename(file+"-away", file); err != nil {
						t.Fatal(err)
					}
					if d.Check() == nil {
						t.Error("Check forgets the loss when the file comes back; another process may have used the folder meanwhile")
					}
				}
			})
		}
	}
	t.Run("recent.json deleted", func(t *testing.T) {
		d, path := used(t)
		if err := errors.Join(os.Remove(filepath.Join(path, "recent.json")), d.Check()); err != nil {
			t.Error(err)
		}
	})
}

// TestCheckBesideReplace: a file that is replaced by its owner is never missed.
func TestCheckBesideReplace(t *testing.T) {
	d := open(t, t.TempDir())
	done := make(chan error)
	go func() {
		var err error
		for i := range 100 {
			err = errors.Join(err, d.Replace("worker.json", fmt.Append(nil, i)))
		}
		done <- err
	}()
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		default:
			if err := d.Check(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestCheckBesideTwoReplaces: while Check looks at a path, its file is replaced twice. The file system
// gives the number of the first file to the last one. A file system in memory, where temporary files
// often are, never does.
func TestCheckBesideTwoReplaces(t *testing.T) {
	folder, err := os.MkdirTemp("/var/tmp", "leaf-test-") //nolint:usetesting // on a disk
	if err != nil {
		folder = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	d := open(t, folder)
	replace := func() uint64 {
		if err := d.Replace("worker.json", nil); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(filepath.Join(folder, "worker.json"))
		if err != nil {
			t.Fatal(err)
		}
		return info.Sys().(*syscall.Stat_t).Ino
	}
	first, last := replace(), uint64(0)
	d.Looking("worker.json", func() { replace() }, func() {
		for range 1000 {
			if last = replace(); last == first {
				return
			}
		}
	})
	if err := d.Check(); err != nil {
		t.Errorf("a file that only its owner replaced is lost: %v", err)
	}
	if last != first {
		t.Skip("this file system gives no number out again")
	}
}

// TestLockFileDeleted: the lock is the folder's, so that deleting the file lets no
// second process in.
func TestLockFileDeleted(t *testing.T) {
	if path := os.Getenv("DATADIR_TEST_CHILD"); path != "" {
		_, err := datadir.Open(path)
		fmt.Println("child:", err) // the parent reads it
		return
	}
	path := t.TempDir()
	open(t, path)
	if err := os.Remove(filepath.Join(path, "lock")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestLockFileDeleted$")
	cmd.Env = append(os.Environ(), "DATADIR_TEST_CHILD="+path)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "in use by another process") {
		t.Fatalf("a second process says %q, %v; want a refusal", out, err)
	}
}

// TestLossWithoutCheck: a program that never calls Check writes nothing into the folder that stands in the place of
// its own, and no write to a file that is gone counts as durable.
func TestLossWithoutCheck(t *testing.T) {
	lost := func(t *testing.T, what string, err error) {
		t.Helper()
		if _, ok := errors.AsType[*datadir.LostError](err); !ok {
			t.Errorf("%s = %v, want a LostError", what, err)
		}
	}
	for what, write := range map[string]func(*datadir.Dir, fence.AppendFile) error{
		"Replace": func(d *datadir.Dir, _ fence.AppendFile) error { return d.Replace("worker.json", nil) },
		"Append":  func(d *datadir.Dir, _ fence.AppendFile) error { _, err := d.Append("fence"); return err },
		"Sync":    func(_ *datadir.Dir, f fence.AppendFile) error { return f.Sync() },
	} {
		d, path := used(t)
		f, err := d.Append("fence")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := errors.Join(os.Rename(path, path+"-away"), os.Mkdir(path, 0o700)); err != nil {
			t.Fatal(err)
		}
		lost(t, what, write(d, f))
		if entries, err := os.ReadDir(path); err != nil || len(entries) > 0 {
			t.Errorf("%s: the other folder has %v, %v", what, entries, err)
		}
	}
}

// TestMissingFile: a node that was started once does not take a folder without its
// fence for a new one.
func TestMissingFile(t *testing.T) {
	d, path := used(t)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"fence", "fence-end", "recent.json"} {
		if err := os.Remove(filepath.Join(path, name)); err != nil {
			t.Fatal(err)
		}
	}
	d = open(t, path)
	for _, name := range []string{"fence", "fence-end"} {
		_, err := d.ReadFile(name)
		if _, ok := errors.AsType[*datadir.MissingError](err); !ok || errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), name) {
			t.Errorf("ReadFile of %s = %v, want a MissingError", name, err)
		}
	}
	if _, err := d.ReadFile("recent.json"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadFile of recent.json = %v, want fs.ErrNotExist", err)
	}
}

func TestOthersMayNotWrite(t *testing.T) {
	path := t.TempDir()
	if err := os.Chmod(path, 0o777); err != nil { //nolint:gosec // that is what is refused
		t.Fatal(err)
	}
	below := filepath.Join(path, "leaf")
	if _, err := datadir.Open(path); err == nil || !strings.Contains(err.Error(), "chmod o-w") || !strings.Contains(err.Error(), below) {
		t.Errorf("Open = %v, want a refusal that says what to do", err)
	}
	open(t, below) // as the text says
	// A folder with files may hold a fence, which a new folder would lack.
	if _, err := datadir.Open(path); err == nil || strings.Contains(err.Error(), "does not exist yet") {
		t.Errorf("Open of a folder with files = %v", err)
	}
	if err := os.Chmod(path, 0o770); err != nil { //nolint:gosec // a group is the administrator's choice
		t.Fatal(err)
	}
	open(t, path)
}

func TestLinksAreNotFollowed(t *testing.T) {
	for _, name := range []string{"lock", "node.json", "fence", "leaf.db", "leaf.db-wal"} {
		path, target := t.TempDir(), filepath.Join(t.TempDir(), "target")
		if err := errors.Join(os.WriteFile(target, []byte("precious"), 0o600), os.Symlink(target, filepath.Join(path, name))); err != nil {
			t.Fatal(err)
		}
		if _, err := datadir.Open(path); err == nil {
			t.Errorf("%s: a symbolic link is followed", name)
		}
		if content, err := os.ReadFile(target); err != nil || string(content) != "precious" {
			t.Errorf("%s: the target holds %q, %v", name, content, err)
		}
	}
	d, path := used(t)
	target := filepath.Join(t.TempDir(), "target")
	if err := errors.Join(os.WriteFile(target, []byte("precious"), 0o600), os.Symlink(target, filepath.Join(path, "link"))); err != nil {
		t.Fatal(err)
	}
	if _, err := d.ReadFile("link"); err == nil {
		t.Error("ReadFile follows a link that was made later")
	}
	if _, err := d.Append("link"); err == nil {
		t.Error("Append follows a link that was made later")
	}
}

// TestNothingIsWrittenAfterClose: a write of a process that has closed the folder must not
// reach it, also one that began before: the folder may belong to another process by then.
func TestNothingIsWrittenAfterClose(t *testing.T) {
	path := t.TempDir()
	first := open(t, path)
	if err := first.Replace("worker.json", []byte("first")); err != nil {
		t.Fatal(err)
	}
	log, err := first.Append("fence.log")
	if errors.Is(err, fs.ErrNotExist) {
		if err = first.Replace("fence.log", nil); err == nil {
			log, err = first.Append("fence.log")
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var late error
	first.Traced(func(call string) {
		if strings.HasPrefix(call, "sync") && late == nil { // of the new file, before it gets its name
			late = errors.New("closed here")
			if err := first.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	if err := first.Replace("worker.json", []byte("late")); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a write that Close overtook: %v", err)
	}
	if err := first.Replace("worker.json", []byte("later")); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a write after Close: %v", err)
	}
	if _, err := first.Append("fence.log"); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("an append after Close: %v", err)
	}
	if _, err := log.Write([]byte("late")); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a write to an open file after Close: %v", err)
	}
	if err := log.Sync(); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("a sync after Close: %v", err)
	}
	second := open(t, path)
	if content, err := second.ReadFile("worker.json"); err != nil || string(content) != "first" {
		t.Errorf("the next process reads %q, %v", content, err)
	}
}
