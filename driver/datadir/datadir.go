package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/ownership"
)

// File names that the folder keeps for itself.
const (
	lockName = "lock"
	nodeName = "node.json"
	tmpMark  = ".tmp-"
)

// LockedError says that another process uses the folder.
type LockedError struct {
	Path string
	PID  int // of the holder, 0 if it did not say
}

// Holder names the other process for people.
func (e *LockedError) Holder() string {
	if e.PID == 0 {
		return "another process"
	}
	return fmt.Sprintf("process %d", e.PID)
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("data directory %s is in use by %s; stop it first. A second node repeats IDs unless it has a --data-dir of its own, the same --store as the first one (--store %q if that has none), and another static worker ID if it has one",
		e.Path, e.Holder(), "sqlite:"+filepath.Join(e.Path, "leaf.db"))
}

// Dir is an open, locked folder. Its methods are safe for concurrent use on
// different file names.
type Dir struct {
	path   string
	sys    system
	nodeID string
	folder *os.File // locked: no other process can take it while this one lives
	lock   *os.File // locked for programs that know the lock file alone; names the holder

	saving chan struct{} // holds a token while a call adds to node.json

	mu    sync.Mutex
	kept  map[string]bool    // what node.json says exists
	inUse map[string][]inode // what each name may stand for, of the files that are watched
	users map[string]*user   // of files that Occupy has given to one
	lost  error              // the first that Check found lost; nil: none
	shut  bool               // by Close
}

// Open creates the folder if it is missing (mode 0700), locks it and reads its
// identity. The error is a *LockedError if another process holds it. A folder that
// every user can write, or that has a symbolic link in it, is refused, and so is an empty path.
func Open(path string) (*Dir, error) {
	if path == "" { // of a variable that is not set; the folder in which a program runs may be a new one at each start
		return nil, leaf.BadField("data directory", path, "must name a folder")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := makeFolder(path); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	d := &Dir{path: path, sys: osSystem{}, saving: make(chan struct{}, 1), kept: map[string]bool{}, inUse: map[string][]inode{}, users: map[string]*user{}}
	if err := d.acquire(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	if err := errors.Join(d.admit(), d.loadIdentity()); err != nil {
		return nil, fmt.Errorf("data directory %s: %w", path, errors.Join(err, d.Close()))
	}
	return d, nil
}

// Path returns the folder's absolute path.
func (d *Dir) Path() string { return d.path }

// NodeID returns the folder's identity, 32 hexadecimal digits.
func (d *Dir) NodeID() string { return d.nodeID }

// Close releases the lock. It may be called more than once. From then on no write begins,
// because the folder may belong to another process. Only what the system is already doing, such
// as a rename that hangs, may still end.
func (d *Dir) Close() error {
	var errs []error
	d.mu.Lock()
	d.shut = true
	for name, files := range d.inUse {
		for _, f := range files {
			if name != lockName {
				_ = f.Close() // what is in it was synced
			}
		}
		delete(d.inUse, name)
	}
	d.mu.Unlock()
	for _, f := range []*os.File{d.lock, d.folder} { // the process that gets the second lock has both
		if f == nil {
			continue
		}
		if err := f.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
			errs = append(errs, fmt.Errorf("unlock data directory: %w", err))
		}
	}
	return errors.Join(errs...)
}

// acquire locks the folder itself, because a file in it could be deleted and locked
// anew by a second process, and then the lock file. It leaves our process number
// there, for the text that the next process prints. The number is a courtesy: the
// locks are the kernel's, and they go with the process.
func (d *Dir) acquire() (err error) {
	if d.folder, err = os.Open(d.path); err != nil {
		return fmt.Errorf("lock data directory: %w", err)
	}
	lockPath := filepath.Join(d.path, lockName)
	if err := flock(d.folder); errors.Is(err, syscall.EWOULDBLOCK) {
		return &LockedError{Path: d.path, PID: holder(lockPath)}
	} // Where a folder cannot be locked, the lock file is, and Check misses it.
	if d.lock, err = os.OpenFile(lockPath, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600); err != nil {
		return fmt.Errorf("lock data directory: %w", err)
	}
	if err := flock(d.lock); errors.Is(err, syscall.EWOULDBLOCK) {
		return &LockedError{Path: d.path, PID: holder(lockPath)}
	} else if err != nil {
		return fmt.Errorf("lock data directory %s: %w", d.path, err)
	}
	d.give(d.lock)
	err = d.lock.Truncate(0)
	if err == nil {
		_, err = d.lock.WriteAt(fmt.Appendln(nil, os.Getpid()), 0)
	}
	if err == nil {
		err = d.watch(lockName, d.lock)
	}
	if err != nil {
		return fmt.Errorf("lock data directory %s: %w", d.path, err)
	}
	return nil
}

// give leaves a file that root has made to the owner of the folder.
func (d *Dir) give(f interface{ Chown(uid, gid int) error }) {
	if folder, err := d.folder.Stat(); err == nil {
		ownership.Inherit(f, folder)
	}
}

func flock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// holder returns the process number in a lock file, 0 if there is none.
func holder(lockPath string) int {
	content, _ := os.ReadFile(lockPath) // without a readable number the text says "another process"
	pid, _ := strconv.Atoi(strings.TrimSpace(string(content)))
	return pid
}

// makeFolder is os.MkdirAll that makes each new folder's name durable.
func makeFolder(path string) error {
	if info, err := os.Stat(path); err == nil {
		if !info.IsDir() {
			return fmt.Errorf("%s is not a folder", path)
		}
		return nil
	}
	parent := filepath.Dir(path)
	if err := makeFolder(parent); err != nil {
		return err
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(osSystem{}, parent)
}

// leftover matches what os.CreateTemp makes of Replace's pattern.
var leftover = regexp.MustCompile(`^[a-z.-]+\.tmp-[0-9]+$`)

// admit refuses a folder in which other users could exchange our files, and deletes
// temporary files that a crash inside Replace left.
func (d *Dir) admit() error {
	info, err := d.folder.Stat()
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	if mode := info.Mode(); mode.Perm()&0o002 != 0 {
		do := ""
		if len(entries) == 1 { // our lock only: a volume of Kubernetes, say, whose mode the node's user cannot change
			do = fmt.Sprintf(", or name a folder below it that does not exist yet: the node makes it, as in --data-dir %q", filepath.Join(d.path, "leaf"))
		}
		return fmt.Errorf("every user can write to it (mode %04o) and exchange the files that unique IDs rest on; run: chmod o-w %q%s", mode.Perm(), d.path, do)
	}
	for _, e := range entries {
		switch {
		case e.Type()&fs.ModeSymlink != 0:
			err = errors.Join(err, fmt.Errorf("%s is a symbolic link, and the node follows none here; stop every node that uses its target, then move the target itself here", e.Name()))
		case leftover.MatchString(e.Name()) && e.Type().IsRegular():
			err = errors.Join(err, os.Remove(filepath.Join(d.path, e.Name())))
		}
	}
	return err
}
