package datadir

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
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

func (e *LockedError) Error() string {
	holder := "another process"
	if e.PID != 0 {
		holder = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("data directory %s is in use by %s; stop it, or choose another --data-dir", e.Path, holder)
}

// Dir is an open, locked folder. Its methods are safe for concurrent use on
// different file names.
type Dir struct {
	path   string
	nodeID string
	lock   *os.File
}

// Open creates the folder if it is missing (mode 0700), locks it and reads its
// identity. The error is a *LockedError if another process holds it.
func Open(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if err := makeFolder(path); err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	lock, err := acquire(path)
	if err != nil {
		return nil, err
	}
	d := &Dir{path: path, lock: lock}
	if err := errors.Join(d.removeLeftovers(), d.loadIdentity()); err != nil {
		return nil, fmt.Errorf("data directory %s: %w", path, errors.Join(err, d.Close()))
	}
	return d, nil
}

// Path returns the folder's absolute path.
func (d *Dir) Path() string { return d.path }

// NodeID returns the folder's identity, 32 hexadecimal digits.
func (d *Dir) NodeID() string { return d.nodeID }

// Close releases the lock. It may be called more than once.
func (d *Dir) Close() error {
	if err := d.lock.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		return fmt.Errorf("unlock data directory: %w", err)
	}
	return nil
}

// acquire takes the lock and leaves our process number in the lock file, for the
// text that the next process prints. The number is a courtesy: the lock itself is
// the kernel's, and it goes with the process.
func acquire(path string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock data directory %s: %w", path, errors.Join(err, f.Close()))
		}
		content, _ := os.ReadFile(f.Name()) // without a readable number the text says "another process"
		pid, _ := strconv.Atoi(strings.TrimSpace(string(content)))
		return nil, errors.Join(&LockedError{Path: path, PID: pid}, f.Close())
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt(fmt.Appendln(nil, os.Getpid()), 0)
	}
	if err != nil {
		return nil, fmt.Errorf("lock data directory %s: %w", path, errors.Join(err, f.Close()))
	}
	return f, nil
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
	return syncFolder(parent)
}

// leftover matches what os.CreateTemp makes of Replace's pattern.
var leftover = regexp.MustCompile(`^[a-z.]+\.tmp-[0-9]+$`)

// removeLeftovers deletes temporary files that a crash inside Replace left.
func (d *Dir) removeLeftovers() error {
	entries, err := os.ReadDir(d.path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if leftover.MatchString(e.Name()) && e.Type().IsRegular() {
			err = errors.Join(err, os.Remove(filepath.Join(d.path, e.Name())))
		}
	}
	return err
}

// identity is the content of node.json.
type identity struct {
	Node string `json:"node"`
}

func (d *Dir) loadIdentity() error {
	content, err := d.ReadFile(nodeName)
	if errors.Is(err, fs.ErrNotExist) {
		return d.createIdentity()
	}
	if err != nil {
		return err
	}
	var id identity
	if err := json.Unmarshal(content, &id); err != nil {
		return fmt.Errorf("%s: %w", nodeName, err)
	}
	if len(id.Node) != 32 {
		return fmt.Errorf("%s: node=%q: must have 32 hexadecimal digits", nodeName, id.Node)
	}
	d.nodeID = id.Node
	return nil
}

func (d *Dir) createIdentity() error {
	var raw [16]byte
	rand.Read(raw[:]) // never fails (crypto/rand)
	d.nodeID = hex.EncodeToString(raw[:])
	content, err := json.Marshal(identity{Node: d.nodeID})
	if err != nil {
		return err
	}
	return d.Replace(nodeName, append(content, '\n'))
}
