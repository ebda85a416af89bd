package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// ErrNoMount means that this process may not mount file systems: it is not root,
// the container forbids it, or the system is not Linux.
var ErrNoMount = errors.New("not allowed to mount a file system")

// Disk is a small file system of its own, in memory, that a test can fill. Its
// methods are not safe for concurrent use, but others may write to it meanwhile.
//
// A file whose last page of 4 KiB is not full can still grow into it on a full
// Disk, and an empty file can be created.
type Disk struct {
	folder *Folder
	path   string
}

// NewDisk mounts a file system of that many bytes below parent, or in the
// system's temporary folder if that is empty. Any user may enter it. The caller
// calls Close; what a killed process left mounted is unmounted by the next start
// of anything below the same parent. The error is ErrNoMount where that is not
// allowed.
func NewDisk(parent string, bytes int64) (*Disk, error) {
	folder, err := NewFolder(parent, "disk")
	if err != nil {
		return nil, err
	}
	d := &Disk{folder, filepath.Join(folder.path, "mounted")}
	err = errors.Join(os.Chmod(folder.path, 0o711), os.Mkdir(d.path, 0o700)) //nolint:gosec // servers of other users go through it
	if err == nil {
		err = mountTmpfs(d.path, bytes)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("mount a disk of %d bytes: %w", bytes, err), folder.Remove())
	}
	return d, nil
}

// OwnDisk mounts a file system for this test alone. Where that is not allowed it
// skips the test, and fails it when CI=true.
func OwnDisk(t testing.TB, bytes int64) *Disk {
	t.Helper()
	return closed(t, "disk", func(context.Context) (*Disk, error) { return NewDisk("", bytes) })
}

// Path returns the folder in which the file system is mounted.
func (d *Disk) Path() string { return d.path }

// Fill takes all the space that is left.
func (d *Disk) Fill() error {
	f, err := os.OpenFile(d.filler(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("fill %s: %w", d.path, err)
	}
	defer f.Close()
	// Whole pieces first, then what is left byte by byte.
	for piece := make([]byte, 1<<20); len(piece) > 0; {
		if _, err = f.Write(piece); err != nil {
			piece = piece[:len(piece)/2]
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("fill %s: %w", d.path, err)
	}
	return nil
}

// Free frees what Fill has taken.
func (d *Disk) Free() error {
	if err := os.Remove(d.filler()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("free %s: %w", d.path, err)
	}
	return nil
}

// Close unmounts the file system, and all that was on it is gone. It is
// idempotent. Processes that still use it see it until they end.
func (d *Disk) Close() error { return d.folder.Remove() }

func (d *Disk) filler() string { return filepath.Join(d.path, "filler") }
