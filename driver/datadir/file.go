package datadir

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment/fence"
)

var _ fence.Disk = (*Dir)(nil)

// ReadFile implements fence.Disk. The error is a *MissingError if node.json records
// that the file was written. Check misses a file from its first reading on, not only from
// the first time that this process writes it.
func (d *Dir) ReadFile(name string) ([]byte, error) {
	f, err := os.OpenFile(filepath.Join(d.path, name), os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.kept[name] {
			return nil, &MissingError{Path: d.path, Name: name}
		}
	}
	if err != nil {
		return nil, err
	}
	content, err := io.ReadAll(f)
	if err == nil && watched(name) && !d.isWatched(name) {
		if err = d.watch(name, f); err == nil {
			return content, nil
		}
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	return content, nil
}

// user is the one user of a file in this process, from Occupy to leave.
type user struct{ _ byte } // two have two addresses

// Occupy implements fence.Disk and worker.Disk. The lock of the folder keeps other processes out,
// but not a second Allocator or Holder of this process.
func (d *Dir) Occupy(name string) (leave func(), err error) {
	own := &user{}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.users[name] != nil {
		return nil, fmt.Errorf("%w: file %s of data directory %s is in use in this process: close the Allocator or Holder that uses it first, or give each one a directory of its own", leaf.ErrConflict, name, d.path)
	}
	d.users[name] = own
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.users[name] == own {
			delete(d.users, name)
		}
	}, nil
}

// Append implements fence.Disk.
func (d *Dir) Append(name string) (fence.AppendFile, error) {
	if err := d.look(); err != nil {
		return nil, err
	}
	f, err := d.sys.OpenFile(filepath.Join(d.path, name), os.O_WRONLY|os.O_APPEND|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	return &appendFile{f, d}, nil
}

// appendFile refuses to write and to sync once the folder is closed or has lost a file: another
// process may use the folder, and what this one appends would not be there for the next.
type appendFile struct {
	file

	d *Dir
}

func (f *appendFile) Write(b []byte) (int, error) {
	if err := f.d.writable(); err != nil {
		return 0, err
	}
	return f.file.Write(b)
}

func (f *appendFile) Sync() error {
	if err := f.d.look(); err != nil {
		return err
	}
	return f.file.Sync()
}

// Replace implements fence.Disk. The order is what makes it durable: the
// content reaches the medium before the name points to it, and the name before
// the caller hears of success.
func (d *Dir) Replace(name string, content []byte) error {
	if err := d.look(); err != nil {
		return err
	}
	tmp, err := d.sys.CreateTemp(d.path, name+tmpMark+"*") // mode 0600
	if err != nil {
		return fmt.Errorf("replace %s: %w", name, d.rename(name, err))
	}
	d.give(tmp)
	if err := d.put(tmp, name, content); err != nil {
		return fmt.Errorf("replace %s: %w", name, d.rename(name, err, tmp.Close(), os.Remove(tmp.Name())))
	}
	if err := syncFolder(d.sys, d.path); err != nil {
		return fmt.Errorf("replace %s: %w", name, err)
	}
	if err := d.keep(name); err != nil {
		return fmt.Errorf("record that %s exists: %w", name, err)
	}
	return nil
}

// rename joins errors, with the name of the file in place of the temporary one, which is another one
// each time: a text that changes would be logged each time, and be another alarm.
func (d *Dir) rename(name string, errs ...error) error {
	path := filepath.Join(d.path, name)
	isTemporary := func(other string) bool { return strings.HasPrefix(other, path+tmpMark) }
	for _, err := range errs {
		if e, ok := errors.AsType[*fs.PathError](err); ok && isTemporary(e.Path) {
			e.Path = path
		}
		if e, ok := errors.AsType[*os.LinkError](err); ok && isTemporary(e.Old) {
			e.Old = path
		}
	}
	return errors.Join(errs...)
}

// put writes a new file and gives it the name. Unless there is an error it closes the
// file, or keeps it open for Check.
func (d *Dir) put(f file, name string, content []byte) error {
	if _, err := f.Write(content); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := d.writable(); err != nil { // the write may have taken long
		return err
	}
	path := filepath.Join(d.path, name)
	switch {
	case !watched(name):
		if err := d.sys.Rename(f.Name(), path); err != nil {
			return err
		}
		return f.Close()
	case !d.isWatched(name): // the name need not exist before the rename
		if err := d.sys.Rename(f.Name(), path); err != nil {
			return err
		}
		if err := d.watch(name, f); err != nil {
			return err
		}
		d.closeOthers(name, f, true) // it may have been read meanwhile
		return nil
	}
	if err := d.watch(name, f); err != nil {
		return err
	}
	err := d.sys.Rename(f.Name(), path)
	d.closeOthers(name, f, err == nil)
	return err
}

// syncFolder makes the names in a folder durable.
func syncFolder(sys system, path string) error {
	folder, err := sys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
