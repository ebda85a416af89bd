package server

import (
	"context"
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

// folder is a temporary folder that its owner holds a lock on for as long as it
// lives, so that others can tell a left-over from one in use.
type folder struct {
	path string
	lock *os.File
}

// newFolder makes a folder below parent, which is the system's temporary folder
// if it is empty, and removes what dead owners left there.
func newFolder(parent, name string) (*folder, error) {
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
	f := &folder{path, lock}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		_ = f.remove()
		return nil, fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	return f, nil
}

// remove deletes the folder before it releases the lock.
func (f *folder) remove() error {
	err := os.RemoveAll(f.path)
	f.lock.Close()
	return err
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
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			postgres{}.tidy(ctx, filepath.Dir(path)) // finds nothing in another server's folder
			cancel()
			_ = os.RemoveAll(filepath.Dir(path))
		}
		lock.Close()
	}
}
