package newest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ErrUnavailable means that a server could be neither fetched nor found in the folder.
// The error that wraps it says what was tried and what to do.
var ErrUnavailable = errors.New("the newest servers are not available")

// age is how long a copy is used without asking the mirror for a newer version.
const age = 7 * 24 * time.Hour

// Source is a mirror and a folder. It may be used by one goroutine at a time; several
// processes may use one folder.
type Source struct {
	// Folder keeps what was unpacked. It is made if it does not exist.
	Folder string
	// Mirror is the URL of a Debian archive.
	Mirror string
	// Suite is the part of the archive.
	Suite string
	// Unsigned trusts an index that nobody signed; for tests.
	Unsigned bool
	// Pause is the time between two attempts; the second pause is twice as long.
	Pause time.Duration
	// Report is told what is fetched, how large it is, and where it lies.
	Report io.Writer

	updated bool // the index was read by this process
}

// Default returns the source that tests use: the suite "sid" of the mirror that
// LEAF_TEST_MIRROR names, else of the one that apt-get of this machine uses. The folder
// is the one that LEAF_TEST_SERVERS names, else leaf-test-servers in the user's cache, for
// root in /var/cache, where the user postgres can read it.
func Default(ctx context.Context, report io.Writer) (*Source, error) {
	folder, err := defaultFolder()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	s := &Source{Folder: folder, Mirror: os.Getenv("LEAF_TEST_MIRROR"), Suite: "sid", Pause: 5 * time.Second, Report: report}
	if s.Mirror == "" {
		s.Mirror = systemMirror(ctx)
	}
	return s, nil
}

func defaultFolder() (string, error) {
	if folder := os.Getenv("LEAF_TEST_SERVERS"); folder != "" {
		return filepath.Abs(folder)
	}
	cache := "/var/cache"
	if os.Geteuid() != 0 {
		var err error
		if cache, err = os.UserCacheDir(); err != nil {
			return "", err
		}
	}
	return filepath.Join(cache, "leaf-test-servers"), nil
}

// Programs returns a folder with the programs of a set, see [Names], and fetches them if
// there is no copy of the last seven days.
func (s *Source) Programs(ctx context.Context, name string) (bin string, err error) {
	wanted, err := setNamed(name)
	if err != nil {
		return "", err
	}
	home := filepath.Join(s.Folder, name)
	if err := os.MkdirAll(home, 0o755); err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return "", err
	}
	defer unlock()
	current := filepath.Join(home, "current")
	root, modified := installed(current)
	if root != "" && time.Since(modified) < age {
		return filepath.Join(root, "bin"), nil
	}
	fresh, err := s.install(ctx, wanted, home)
	switch {
	case err == nil:
		return filepath.Join(fresh, "bin"), nil
	case root != "" && ctx.Err() == nil:
		s.report("%v\nnewest: USING THE COPY OF %s: %s", err, modified.Format(time.DateOnly), root)
		return filepath.Join(root, "bin"), nil
	}
	return "", err
}

// install fetches and unpacks a set and makes it the current one.
func (s *Source) install(ctx context.Context, wanted set, home string) (root string, err error) {
	work, err := os.MkdirTemp(home, "unpacking-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)
	if err := os.Chmod(work, 0o755); err != nil { // the user postgres goes through it
		return "", err
	}
	packages, err := s.fetch(ctx, wanted.pkg, filepath.Join(work, "packages"))
	if err != nil {
		return "", err
	}
	version, err := versionOf(wanted.pkg, packages)
	if err != nil {
		return "", err
	}
	root = filepath.Join(home, version)
	if _, err := os.Stat(root); errors.Is(err, fs.ErrNotExist) {
		begin := time.Now()
		tree := filepath.Join(work, "root")
		if err := unpack(ctx, packages, tree); err != nil {
			return "", err
		}
		if err := wrap(wanted, tree, root); err != nil {
			return "", err
		}
		if err := os.Rename(tree, root); err != nil {
			return "", err
		}
		s.report("unpacked %s %s in %v: %s", wanted.pkg, version, time.Since(begin).Round(time.Second/10), root)
	}
	current := filepath.Join(home, "current")
	previous, _ := installed(current)
	if err := os.WriteFile(filepath.Join(work, "current"), []byte(version+"\n"), 0o644); err != nil {
		return "", err
	}
	if err := os.Rename(filepath.Join(work, "current"), current); err != nil {
		return "", err
	}
	forget(home, root, previous)
	return root, nil
}

// installed returns the folder that the file current names, and since when it does; an
// empty path if there is none.
func installed(current string) (root string, modified time.Time) {
	version, err := os.ReadFile(current)
	if err != nil {
		return "", time.Time{}
	}
	info, err := os.Stat(current)
	if err != nil {
		return "", time.Time{}
	}
	root = filepath.Join(filepath.Dir(current), strings.TrimSpace(string(version)))
	if _, err := os.Stat(filepath.Join(root, "bin")); err != nil {
		return "", time.Time{}
	}
	return root, info.ModTime()
}

// forget removes all versions but those that are named: another process may still use
// the previous one.
func forget(home string, keep ...string) {
	all, _ := filepath.Glob(filepath.Join(home, "*", "bin"))
	for _, bin := range all {
		root := filepath.Dir(bin)
		if root != keep[0] && root != keep[1] {
			_ = os.RemoveAll(root) // the next time, then
		}
	}
}

// lock waits until no other process fetches or unpacks.
func (s *Source) lock(ctx context.Context) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(s.Folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for tries := 0; ; tries++ {
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			return func() { _ = f.Close() }, nil
		}
		if tries == 0 {
			s.report("another process unpacks servers in %s; waiting for it", s.Folder)
		}
		select {
		case <-ctx.Done():
			_ = f.Close()
			return nil, fmt.Errorf("%w: wait for the lock of %s: %w", ErrUnavailable, s.Folder, ctx.Err())
		case <-tick.C:
		}
	}
}

func (s *Source) report(format string, args ...any) {
	fmt.Fprintf(s.Report, "newest: "+format+"\n", args...)
}
