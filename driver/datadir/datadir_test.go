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

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/datadir"
)

func open(t testing.TB, path string) *datadir.Dir {
	t.Helper()
	d, err := datadir.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func TestIdentityStays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	d := open(t, path)
	first := d.NodeID()
	if len(first) != 32 {
		t.Fatalf("NodeID = %q, want 32 digits", first)
	}
	d.Close()
	if got := open(t, path).NodeID(); got != first {
		t.Fatalf("NodeID after reopening = %q, want %q", got, first)
	}
	if other := open(t, t.TempDir()).NodeID(); other == first {
		t.Fatal("two folders have one identity")
	}
}

func TestOwnerOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "d")
	d := open(t, path)
	if err := d.Replace("x", []byte("1")); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]fs.FileMode{"": 0o700, "x": 0o600, "node.json": 0o600, "lock": 0o600} {
		info, err := os.Stat(filepath.Join(path, name))
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("mode of %q = %o, want %o", name, got, want)
		}
	}
}

// TestFilesBelongToTheOwner: a command that root runs in the folder of a node must not leave files
// that the node's user cannot read. Under systemd, every command that an administrator types is one.
func TestFilesBelongToTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files away")
	}
	const owner = 65534
	path := filepath.Join(t.TempDir(), "d")
	if err := errors.Join(os.Mkdir(path, 0o700), os.Chown(path, owner, owner)); err != nil {
		t.Fatal(err)
	}
	d := open(t, path)
	for range 2 {
		if err := errors.Join(d.Replace("fence", nil), d.Replace("recent.json", nil)); err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(path)
	if err != nil || len(entries) != 4 {
		t.Fatalf("%v, %v", entries, err)
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

func TestSecondProcessIsRefused(t *testing.T) {
	path := t.TempDir()
	if os.Getenv("DATADIR_TEST_CHILD") != "" {
		_, err := datadir.Open(os.Getenv("DATADIR_TEST_CHILD"))
		fmt.Println("child:", err) // the parent reads it
		return
	}
	open(t, path)
	cmd := exec.Command(os.Args[0], "-test.run=^TestSecondProcessIsRefused$")
	cmd.Env = append(os.Environ(), "DATADIR_TEST_CHILD="+path)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if !strings.Contains(string(out), "in use by process") || !strings.Contains(string(out), path) {
		t.Fatalf("child printed %q, want a text with the folder and the process", out)
	}

	var locked *datadir.LockedError
	if _, err := datadir.Open(path); !errors.As(err, &locked) || locked.PID != os.Getpid() {
		t.Fatalf("second Open in one process = %v, want *LockedError with PID %d", err, os.Getpid())
	}
}

func TestReplaceAndAppend(t *testing.T) {
	path := t.TempDir()
	d := open(t, path)
	if _, err := d.ReadFile("f"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("ReadFile of a missing file = %v, want fs.ErrNotExist", err)
	}
	if _, err := d.Append("f"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("Append to a missing file = %v, want fs.ErrNotExist", err)
	}
	for _, content := range []string{"one", "two"} {
		if err := d.Replace("f", []byte(content)); err != nil {
			t.Fatal(err)
		}
	}
	f, err := d.Append("f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte("+three")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
	if got, _ := d.ReadFile("f"); string(got) != "two+three" {
		t.Fatalf("content = %q, want %q", got, "two+three")
	}
}

func TestLeftoverOfACrashIsRemoved(t *testing.T) {
	path := t.TempDir()
	leftover := filepath.Join(path, "fence.tmp-123")
	if err := os.WriteFile(leftover, []byte("torn"), 0o600); err != nil {
		t.Fatal(err)
	}
	// What is not ours stays, however much it looks like it.
	thesis, folder := filepath.Join(path, "thesis.tmp-backup.txt"), filepath.Join(path, "x.tmp-1")
	if err := errors.Join(os.WriteFile(thesis, nil, 0o600), os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, "y"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	open(t, path)
	if _, err := os.Stat(leftover); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("leftover is still there: %v", err)
	}
	for _, name := range []string{thesis, folder} {
		if _, err := os.Stat(name); err != nil {
			t.Errorf("somebody else's file is gone: %v", err)
		}
	}
}

func TestNotAFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	if _, err := datadir.Open(""); !errors.Is(err, leaf.ErrBadRequest) {
		t.Errorf("Open of an empty path = %v, want a refusal", err)
	}
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, filepath.Join(path, "below")} {
		if _, err := datadir.Open(p); err == nil || !strings.Contains(err.Error(), "is not a folder") {
			t.Errorf("Open(%q) = %v, want a refusal", p, err)
		}
	}
}

func TestDamagedIdentityIsRefused(t *testing.T) {
	for name, content := range map[string]string{"empty": "", "not JSON": "x", "short": `{"node":"12"}`} {
		t.Run(name, func(t *testing.T) {
			path := t.TempDir()
			if err := os.WriteFile(filepath.Join(path, "node.json"), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := datadir.Open(path); err == nil || !strings.Contains(err.Error(), "node.json") {
				t.Fatalf("Open = %v, want an error that names node.json", err)
			}
			if err := os.Remove(filepath.Join(path, "node.json")); err != nil {
				t.Fatal(err)
			}
			open(t, path) // the failed Open released the lock
		})
	}
}
