package datadir

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/leaf-idgen/leaf/segment"
)

var _ segment.Disk = (*Dir)(nil)

// ReadFile implements segment.Disk.
func (d *Dir) ReadFile(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(d.path, name))
}

// Append implements segment.Disk.
func (d *Dir) Append(name string) (segment.AppendFile, error) {
	f, err := os.OpenFile(filepath.Join(d.path, name), os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err // a nil *os.File in a non-nil interface would look open
	}
	return f, nil
}

// Replace implements segment.Disk. The order is what makes it durable: the
// content reaches the medium before the name points to it, and the name before
// the caller hears of success.
func (d *Dir) Replace(name string, content []byte) error {
	tmp, err := os.CreateTemp(d.path, name+tmpMark+"*") // mode 0600
	if err != nil {
		return fmt.Errorf("replace %s: %w", name, err)
	}
	_, err = tmp.Write(content)
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err == nil {
		err = os.Rename(tmp.Name(), filepath.Join(d.path, name))
	}
	if err != nil {
		return fmt.Errorf("replace %s: %w", name, errors.Join(err, os.Remove(tmp.Name())))
	}
	if err := syncFolder(d.path); err != nil {
		return fmt.Errorf("replace %s: %w", name, err)
	}
	return nil
}

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
