package datadir

import (
	"io/fs"
	"path/filepath"
	"sync/atomic"
)

// Traced makes d tell trace of each call that decides what is durable.
func (d *Dir) Traced(trace func(call string)) { d.sys = traced{d.sys, trace} }

// Looking calls before and after around the next look at a file.
func (d *Dir) Looking(at string, before, after func()) {
	d.sys = &looking{system: d.sys, at: at, before: before, after: after}
}

// Named is what d makes of the errors of one write of a file.
func (d *Dir) Named(name string, errs ...error) error { return d.rename(name, errs...) }

type looking struct {
	system

	at            string
	before, after func()
	looked        atomic.Bool
}

func (l *looking) Lstat(name string) (fs.FileInfo, error) {
	if filepath.Base(name) != l.at || l.looked.Swap(true) {
		return l.system.Lstat(name)
	}
	l.before()
	defer l.after()
	return l.system.Lstat(name)
}

// traced names temporary files without their random end.
type traced struct {
	system

	trace func(call string)
}

func (t traced) CreateTemp(folder, pattern string) (file, error) {
	f, err := t.system.CreateTemp(folder, pattern)
	return &tracedFile{f, filepath.Base(pattern), t.trace}, err
}

func (t traced) OpenFile(name string, flag int, mode fs.FileMode) (file, error) {
	f, err := t.system.OpenFile(name, flag, mode)
	return &tracedFile{f, filepath.Base(name), t.trace}, err
}

func (t traced) Rename(from, to string) error {
	t.trace("rename to " + filepath.Base(to))
	return t.system.Rename(from, to)
}

type tracedFile struct {
	file

	as    string
	trace func(call string)
}

func (f *tracedFile) Write(b []byte) (int, error) {
	f.trace("write " + f.as)
	return f.file.Write(b)
}

func (f *tracedFile) Sync() error {
	f.trace("sync " + f.as)
	return f.file.Sync()
}
