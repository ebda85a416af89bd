package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const (
	folderPrefix = "leaf-test-"
	lockName     = "owner.lock"
)

// Folder is a temporary folder that its owner holds a lock on for as long as it
// lives, so that others can tell a left-over from one in use.
type Folder struct {
	path string
	lock *os.File
}

// NewFolder makes a folder below parent, which is the system's temporary folder
// if it is empty, and removes what dead owners left there. Only its owner may
// enter it.
func NewFolder(parent, name string) (*Folder, error) {
	if parent == "" {
		parent = os.TempDir()
	}
	sweep(parent)
	path, err := os.MkdirTemp(parent, folderPrefix+name+"-")
	if err != nil {
		return nil, err
	}
	lock, err := os.Create(filepath.Join(path, lockName))
	if err != nil {
		return nil, err
	}
	f := &Folder{path, lock}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		_ = f.Remove()
		return nil, fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	return f, nil
}

// Path returns where the folder is.
func (f *Folder) Path() string { return f.path }

// Remove deletes the folder with all that is in it.
func (f *Folder) Remove() error {
	defer f.lock.Close() // last: an unlocked folder is anybody's to sweep
	return discard(f.path)
}

// sweep removes the folders whose owners have died. A folder younger than a
// minute may not have its lock yet and is left for the next time.
func sweep(parent string) {
	locks, _ := filepath.Glob(filepath.Join(parent, folderPrefix+"*", lockName))
	for _, path := range locks {
		lock, err := os.Open(path)
		if err != nil {
			continue
		}
		info, err := lock.Stat()
		if err == nil && time.Since(info.ModTime()) > time.Minute &&
			syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = discard(filepath.Dir(path)) // what remains is for the next time
		}
		lock.Close()
	}
}

func discard(path string) error {
	freeSharedMemory(path)
	return errors.Join(unmountBelow(path), os.RemoveAll(path))
}
