package datadir

import (
	"io"
	"io/fs"
	"os"
)

// system is what makes a file durable, as far as the order of the calls decides
// whether it is, and what shows which file a path names. A test records that order: no
// other observation shows a sync that is missing.
type system interface {
	CreateTemp(folder, pattern string) (file, error)
	OpenFile(name string, flag int, mode fs.FileMode) (file, error)
	Rename(from, to string) error
	Lstat(name string) (fs.FileInfo, error)
}

type file interface {
	io.WriteCloser
	Name() string
	Stat() (fs.FileInfo, error)
	Sync() error
	Chown(uid, gid int) error
}

type osSystem struct{}

func (osSystem) CreateTemp(folder, pattern string) (file, error) {
	return nilled(os.CreateTemp(folder, pattern))
}

func (osSystem) OpenFile(name string, flag int, mode fs.FileMode) (file, error) {
	return nilled(os.OpenFile(name, flag, mode))
}

func (osSystem) Rename(from, to string) error { return os.Rename(from, to) }

func (osSystem) Lstat(name string) (fs.FileInfo, error) { return os.Lstat(name) }

// nilled makes the interface nil where the file is.
func nilled(f *os.File, err error) (file, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}
