package main

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// built are the program and the package of two copies of the repository in two folders,
// and the package of the next version.
var built struct {
	folder, root     string
	programs, debs   [2]string
	commit, upgraded string
}

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	folder, err := os.MkdirTemp("", "leaf-release")
	if err == nil {
		defer func() { _ = os.RemoveAll(folder) }()
		err = buildTwice(folder)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

func buildTwice(folder string) (err error) {
	built.folder = folder
	if built.root, err = filepath.Abs(filepath.Join("..", "..")); err != nil {
		return err
	}
	for i, name := range []string{"a", "another/folder"} {
		root := filepath.Join(folder, name)
		if err := copyTo(root); err != nil {
			return err
		}
		r, err := open(ctx, root, "v1.2.3")
		if err != nil {
			return err
		}
		out := filepath.Join(root, "bin")
		if built.programs[i], err = r.program(ctx, out); err != nil {
			return err
		}
		if built.debs[i], err = r.debian(out, built.programs[i]); err != nil {
			return err
		}
		built.commit = r.fields["FullCommit"]
		if i == 1 {
			r.fields["Version"], r.stored = "1.3.0", true
			if built.upgraded, err = r.debian(out, built.programs[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// copyTo makes a git checkout with the files of the work tree.
func copyTo(root string) error {
	if err := command("git", "clone", "--quiet", "--shared", "--no-checkout", built.root, root); err != nil {
		return err
	}
	if err := command("git", "-C", root, "reset", "--quiet"); err != nil {
		return err
	}
	list, err := exec.CommandContext(ctx, "git", "-C", built.root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").Output()
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimRight(string(list), "\x00"), "\x00") {
		content, err := os.ReadFile(filepath.Join(built.root, name))
		if os.IsNotExist(err) {
			continue // deleted and not committed yet
		}
		info, err2 := os.Stat(filepath.Join(built.root, name))
		to := filepath.Join(root, name)
		if err != nil || err2 != nil || os.MkdirAll(filepath.Dir(to), 0o755) != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
		if err := os.WriteFile(to, content, info.Mode()); err != nil {
			return err
		}
	}
	return nil
}

// command runs a program that prints nothing when all is well.
func command(name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return nil
}

func hash(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// TestReproducible: two builds of one commit in two folders are equal to the byte.
func TestReproducible(t *testing.T) {
	for name, files := range map[string][2]string{"the program": built.programs, "the Debian package": built.debs} {
		if a, b := hash(t, files[0]), hash(t, files[1]); a != b {
			t.Errorf("%s: SHA-256 %s in one folder, %s in another", name, a, b)
		}
	}
	if hash(t, built.debs[1]) == hash(t, built.upgraded) {
		t.Error("the packages of two versions are equal: the comparison sees nothing")
	}
}

// TestStatic: the program needs no library, and knows its commit.
func TestStatic(t *testing.T) {
	f, err := elf.Open(built.programs[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	if err != nil || len(libraries) > 0 {
		t.Errorf("the program needs %q, %v", libraries, err)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the program needs a dynamic linker")
		}
	}
	out, err := exec.CommandContext(t.Context(), built.programs[0], "version", "--json").CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte(`"commit":"`+built.commit+`"`)) {
		t.Errorf("leaf version --json: %s, %v, want commit %s", out, err, built.commit)
	}
}

// TestFilesExist: what .goreleaser.yaml names is there.
func TestFilesExist(t *testing.T) {
	r, err := open(t.Context(), built.root, "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	p := r.project
	names := []string{p.DockersV2[0].Dockerfile, p.NFPMs[0].Scripts.PostInstall, p.NFPMs[0].Scripts.PreRemove, p.NFPMs[0].Scripts.PostRemove}
	for _, f := range p.Archives[0].Files {
		names = append(names, f.Source)
	}
	for _, c := range p.NFPMs[0].Contents {
		names = append(names, c.Source)
	}
	if len(names) < 10 {
		t.Errorf("only %d names were found", len(names))
	}
	for _, name := range names {
		if _, err := os.Stat(r.path(name)); err != nil {
			t.Error(err)
		}
	}
}
