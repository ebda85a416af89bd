package app_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/app"
)

// TestSourcesThatChange looks at files as they change in the ways that editors, tools and
// Kubernetes have.
func TestSourcesThatChange(t *testing.T) {
	t.Parallel()
	write := func(t *testing.T, path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	do := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name    string
		changes []func(t *testing.T, dir string) // one before each look
		want    string                           // what each look finds: . nothing, ! read again
	}{
		{"nothing happens", []func(*testing.T, string){nil, nil, nil}, "..."},
		{"a file is written at once", []func(*testing.T, string){
			func(t *testing.T, dir string) { t.Helper(); write(t, filepath.Join(dir, "token"), "another") }, nil, nil,
		}, ".!."},
		{"a file is written in pieces", []func(*testing.T, string){
			func(t *testing.T, dir string) { t.Helper(); write(t, filepath.Join(dir, "token"), "an") },
			func(t *testing.T, dir string) { t.Helper(); write(t, filepath.Join(dir, "token"), "anoth") },
			func(t *testing.T, dir string) { t.Helper(); write(t, filepath.Join(dir, "token"), "another") }, nil, nil,
		}, "...!."},
		{"a file of the same length and time takes the place of another", []func(*testing.T, string){
			func(t *testing.T, dir string) {
				t.Helper()
				path := filepath.Join(dir, "token")
				was, err := os.Stat(path)
				do(t, err)
				write(t, path+".new", "TOKEN")
				do(t, os.Chtimes(path+".new", was.ModTime(), was.ModTime()))
				do(t, os.Rename(path+".new", path))
			}, nil, nil,
		}, ".!."},
		{"a symbolic link leads to another folder", []func(*testing.T, string){
			func(t *testing.T, dir string) {
				t.Helper()
				do(t, os.Symlink("second", filepath.Join(dir, "..data_tmp")))
				do(t, os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")))
			}, nil, nil,
		}, ".!."},
		{"a file is gone, and comes back", []func(*testing.T, string){
			func(t *testing.T, dir string) { t.Helper(); do(t, os.Remove(filepath.Join(dir, "token"))) }, nil, nil,
			func(t *testing.T, dir string) { t.Helper(); write(t, filepath.Join(dir, "token"), "token") }, nil, nil,
		}, ".!..!."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "token"), "token")
			for _, sub := range []string{"first", "second"} {
				do(t, os.Mkdir(filepath.Join(dir, sub), 0o700))
				write(t, filepath.Join(dir, sub, "store"), sub)
			}
			do(t, os.Symlink("first", filepath.Join(dir, "..data")))
			s := app.SourcesOf(seen(filepath.Join(dir, "token"), filepath.Join(dir, "..data", "store")))
			s.Look()
			got := ""
			for _, change := range tt.changes {
				if change != nil {
					change(t, dir)
				}
				again, changed := s.Look()
				switch {
				case !again:
					got += "."
				case len(changed) == 1:
					got += "!"
					s.Read(nil)
				default:
					t.Errorf("read again, and %q have changed", changed)
				}
			}
			if got != tt.want {
				t.Errorf("found %s, want %s", got, tt.want)
			}
		})
	}
}

// seen returns what files are now.
func seen(paths ...string) map[string]fs.FileInfo {
	files := map[string]fs.FileInfo{}
	for _, path := range paths {
		files[path], _ = os.Stat(path)
	}
	return files
}

// TestSourcesAreTriedAgain: after a failure the files are read again at each look, and only
// another reason is news.
func TestSourcesAreTriedAgain(t *testing.T) {
	t.Parallel()
	s := app.SourcesOf(seen(filepath.Join(t.TempDir(), "token")))
	s.Look()
	for i, tt := range []struct {
		err  error
		news bool
	}{{os.ErrNotExist, true}, {os.ErrNotExist, false}, {os.ErrPermission, true}, {nil, false}, {os.ErrPermission, true}} {
		if news := s.Read(tt.err); news != tt.news {
			t.Errorf("attempt %d: news %v, want %v", i, news, tt.news)
		}
		if again, changed := s.Look(); again != (tt.err != nil) || len(changed) > 0 {
			t.Errorf("attempt %d: again %v, changed %q", i, again, changed)
		}
	}
}

// TestReloadAlarm: the alarm is active from a reload that fails to one that succeeds, and shows
// no secret.
func TestReloadAlarm(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	a, _ := start(t, c)
	alarm := func() string {
		reasons := a.Ready().Reasons
		i := slices.IndexFunc(reasons, func(r string) bool { return strings.HasPrefix(r, "alarm configuration (reload): ") })
		if i < 0 {
			return ""
		}
		return reasons[i]
	}
	bad := c
	bad.Stores, bad.HTTP.MaxConns = []string{"mysql://leaf:hunter2@db/leaf?charset=utf8"}, 0
	if _, err := a.Reload(bad); err == nil {
		t.Fatal("no error")
	}
	if text := alarm(); !strings.Contains(text, "http.max-conns") || !strings.Contains(text, "; store=") || strings.Contains(text, "hunter2") {
		t.Errorf("the alarm is %q", text)
	}
	if !a.Ready().Segment.Ready {
		t.Error("the node is not ready")
	}
	if _, err := a.Reload(c); err != nil || alarm() != "" {
		t.Errorf("after a reload that succeeds: %v, %q", err, alarm())
	}
}
