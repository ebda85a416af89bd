package newest_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/newest"
)

// archive is a Debian archive with one package, etcd-server, that needs another one.
type archive struct {
	*httptest.Server
	folder   string
	requests atomic.Int64
	down     atomic.Bool
}

func newArchive(t *testing.T) *archive {
	t.Helper()
	for _, tool := range []string{"apt-get", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("NOT TESTED: %v", err)
		}
	}
	a := &archive{folder: t.TempDir()}
	files := http.FileServer(http.Dir(a.folder))
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.requests.Add(1)
		if a.down.Load() {
			http.Error(w, "down", http.StatusServiceUnavailable)
			return
		}
		r.Header.Del("If-Modified-Since") // it counts in seconds
		files.ServeHTTP(w, r)
	}))
	t.Cleanup(a.Close)
	return a
}

// publish offers a version of the package, whose program prints text.
func (a *archive) publish(t *testing.T, version, text string) (program string) {
	t.Helper()
	library := a.build(t, "libetcd", version, "", "usr/share/doc/libetcd/copyright", "none")
	program = a.build(t, "etcd-server", version, "libetcd (= "+version+"), systemd | systemd-sysusers", "usr/bin/etcd", "#!/bin/sh\necho "+text+"\n")
	var index bytes.Buffer
	for _, file := range []string{library, program} {
		control, err := exec.CommandContext(t.Context(), "dpkg-deb", "-f", file).Output()
		if err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&index, "%sFilename: %s\nSize: %d\nSHA256: %x\n\n", control, filepath.Base(file), len(content), sha256.Sum256(content))
	}
	path := "main/binary-" + a.architecture(t) + "/Packages"
	write(t, filepath.Join(a.folder, "dists/sid", path), index.String())
	write(t, filepath.Join(a.folder, "dists/sid/Release"), fmt.Sprintf("Origin: test\nSuite: sid\nComponents: main\nArchitectures: %s\nDate: %s\nSHA256:\n %x %d %s\n",
		a.architecture(t), time.Now().UTC().Format(time.RFC1123), sha256.Sum256(index.Bytes()), index.Len(), path))
	return program
}

func (a *archive) architecture(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "dpkg", "--print-architecture").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

func (a *archive) build(t *testing.T, name, version, depends, path, content string) string {
	t.Helper()
	tree := t.TempDir()
	control := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: none\nDescription: test\n", name, version, a.architecture(t))
	if depends != "" {
		control += "Depends: " + depends + "\n"
	}
	write(t, filepath.Join(tree, "DEBIAN/control"), control)
	write(t, filepath.Join(tree, path), content)
	if err := os.Chmod(filepath.Join(tree, path), 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(a.folder, name+"_"+version+".deb")
	if out, err := exec.CommandContext(t.Context(), "dpkg-deb", "--build", "--root-owner-group", tree, file).CombinedOutput(); err != nil {
		t.Fatalf("dpkg-deb: %v\n%s", err, out)
	}
	return file
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// source returns one on an archive, and what it reports.
func source(t *testing.T, folder, mirror string) (*newest.Source, *bytes.Buffer) {
	t.Helper()
	report := new(bytes.Buffer)
	return &newest.Source{Folder: folder, Mirror: mirror, Suite: "sid", Unsigned: true, Pause: time.Millisecond, Report: report}, report
}

// says runs the program etcd of a folder.
func says(t *testing.T, bin string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "etcd")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

// grow makes the current copy older than a week.
func grow(t *testing.T, folder string) {
	t.Helper()
	old := time.Now().Add(-8 * 24 * time.Hour)
	if err := os.Chtimes(filepath.Join(folder, "etcd/current"), old, old); err != nil {
		t.Fatal(err)
	}
}

func TestACopyIsUsedForAWeek(t *testing.T) {
	t.Parallel()
	a, folder := newArchive(t), t.TempDir()
	a.publish(t, "3.5.1-1", "one")
	s, report := source(t, folder, a.URL)
	bin, err := s.Programs(t.Context(), "etcd")
	if err != nil {
		t.Fatalf("%v\n%s", err, report)
	}
	if got := says(t, bin); got != "one" || !strings.Contains(bin, "3.5.1-1") || !strings.Contains(report.String(), "Need to get") {
		t.Errorf("%s says %q; want one, and a report with the size:\n%s", bin, got, report)
	}

	a.publish(t, "3.5.2-1", "two")
	before := a.requests.Load()
	again, _ := source(t, folder, a.URL)
	if same, err := again.Programs(t.Context(), "etcd"); err != nil || same != bin || a.requests.Load() != before {
		t.Errorf("Programs = %s, %v after %d requests; want %s without one", same, err, a.requests.Load()-before, bin)
	}

	grow(t, folder)
	newer, err := again.Programs(t.Context(), "etcd")
	if err != nil || says(t, newer) != "two" || says(t, bin) != "one" {
		t.Errorf("Programs after a week = %s, %v; want the new version, and the old one still there", newer, err)
	}

	grow(t, folder)
	a.down.Store(true)
	offline, report := source(t, folder, a.URL)
	if got, err := offline.Programs(t.Context(), "etcd"); err != nil || got != newer || !strings.Contains(report.String(), "USING THE COPY OF") {
		t.Errorf("Programs while the mirror is down = %s, %v; want %s and a loud report\n%s", got, err, newer, report)
	}
}

func TestMirrorThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	a, folder := newArchive(t), t.TempDir()
	a.publish(t, "3.5.1-1", "one")
	a.down.Store(true)
	s, report := source(t, folder, a.URL)
	_, err := s.Programs(t.Context(), "etcd")
	if !errors.Is(err, newest.ErrUnavailable) {
		t.Fatalf("Programs = %v; want ErrUnavailable", err)
	}
	for _, part := range []string{a.URL, "tried 3 times", "LEAF_TEST_MIRROR", "503"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
	if n := strings.Count(report.String(), "reading the index"); n != 3 {
		t.Errorf("%d attempts; want 3\n%s", n, report)
	}
	if left, _ := filepath.Glob(filepath.Join(folder, "etcd", "*")); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestChangedPackageIsRefused(t *testing.T) {
	t.Parallel()
	a, folder := newArchive(t), t.TempDir()
	file := a.publish(t, "3.5.1-1", "one")
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	content[len(content)/2] ^= 1 // of the same size
	write(t, file, string(content))
	s, report := source(t, folder, a.URL)
	bin, err := s.Programs(t.Context(), "etcd")
	if !errors.Is(err, newest.ErrUnavailable) || !strings.Contains(err.Error(), "Hash Sum mismatch") {
		t.Errorf("Programs = %s, %v; want ErrUnavailable that names the checksum\n%s", bin, err, report)
	}
}

func TestProcessesUnpackInTurn(t *testing.T) {
	t.Parallel()
	a, folder := newArchive(t), t.TempDir()
	a.publish(t, "3.5.1-1", "one")
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			s, report := source(t, folder, a.URL)
			bin, err := s.Programs(context.WithoutCancel(t.Context()), "etcd")
			if err != nil {
				t.Errorf("%v\n%s", err, report)
			} else if got := says(t, bin); got != "one" {
				t.Errorf("%s says %q", bin, got)
			}
		})
	}
	wait.Wait()
}

func TestUnknownName(t *testing.T) {
	t.Parallel()
	s, _ := source(t, t.TempDir(), "http://127.0.0.1:1")
	if _, err := s.Programs(t.Context(), "oracle"); err == nil || !strings.Contains(err.Error(), "mysql, postgres") {
		t.Errorf("Programs of an unknown name = %v; want an error with all names", err)
	}
}
