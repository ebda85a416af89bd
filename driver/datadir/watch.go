package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// LostError says that a file which the open folder rests on was deleted or replaced.
// Another process may use what the path names now, so this one writes nothing more.
type LostError struct{ Path string }

func (e *LostError) Error() string {
	return fmt.Sprintf("%s was deleted, moved or replaced while this node used it", e.Path)
}

// watched reports whether the node may issue nothing without the file. The names are
// those of packages segment and worker; a test compares them.
func watched(name string) bool {
	return name == lockName || name == nodeName || name == "worker.json" || keeps(name)
}

// inode is an open file. While it is open the file system gives its number to no other.
type inode struct {
	file

	info fs.FileInfo
}

// watch adds a file to those that the name may stand for: while Replace puts a new file in the
// place of an old one, the name may stand for either. It keeps the file open.
func (d *Dir) watch(name string, f file) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inUse[name] = append(slices.Clip(d.inUse[name]), inode{f, info})
	return nil
}

// settle leaves the file that the name stands for, the last or the first of those
// that it may stand for, and returns the others, which the caller closes.
func (d *Dir) settle(name string, last bool) (others []inode) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.inUse[name]
	if len(all) == 0 {
		return nil // closed meanwhile
	}
	if n := len(all) - 1; last {
		d.inUse[name], others = all[n:], all[:n]
	} else {
		d.inUse[name], others = all[:1], all[1:]
	}
	return others
}

// closeOthers settles what a name stands for and closes the rest, but for the file that
// its caller closes.
func (d *Dir) closeOthers(name string, f file, last bool) {
	for _, other := range d.settle(name, last) {
		if other.file != f {
			_ = other.Close() // what is in it was synced, and another file has its name
		}
	}
}

// isWatched reports whether Check looks at the name already.
func (d *Dir) isWatched(name string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.inUse[name]) > 0
}

// Check compares the folder, and each file that was locked or written through it, with
// what their paths name now. It returns a *LostError if one is gone or another one, and
// from then on the same error, whatever comes back: until the next Open nothing is
// written. An error of another kind says that a path cannot be looked at now. Each write
// looks, too, so an engine ends with what it has; a program that calls Check each second, as
// leaf serve does, can end it before.
func (d *Dir) Check() error {
	d.mu.Lock()
	if d.lost != nil {
		defer d.mu.Unlock()
		return d.lost
	}
	names := make([]string, 0, len(d.inUse))
	for name := range d.inUse {
		names = append(names, name)
	}
	d.mu.Unlock()
	slices.Sort(names)
	err := d.compareFolder()
	for _, name := range names {
		err = errors.Join(err, d.compare(name))
	}
	if lost, ok := errors.AsType[*LostError](err); ok {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.lost == nil {
			d.lost = lost
		}
		return d.lost
	}
	return err
}

func (d *Dir) compareFolder() error {
	own, err := d.folder.Stat()
	if err != nil {
		return err
	}
	now, err := os.Stat(d.path)
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && !os.SameFile(own, now):
		return &LostError{Path: d.path}
	}
	return err
}

// compare looks at one path. What the name may stand for is read before and after, and
// if that is not the same, the look is repeated: a Replace has ended in between.
func (d *Dir) compare(name string) error {
	path := filepath.Join(d.path, name)
	for {
		before := d.standsFor(name)
		now, err := d.sys.Lstat(path)
		after := d.standsFor(name)
		is := func(own inode) bool { return os.SameFile(own.info, now) }
		switch {
		case len(before) == 0 || len(after) == 0:
			return nil // closed meanwhile
		case errors.Is(err, fs.ErrNotExist):
			return &LostError{Path: path}
		case err != nil:
			return err
		case slices.ContainsFunc(before, is), slices.ContainsFunc(after, is):
			return nil
		case len(before) == len(after) && before[0].file == after[0].file: // not by number: that of a closed file is given out again
			return &LostError{Path: path}
		}
	}
}

// standsFor returns the files that a watched name may stand for, none after Close.
func (d *Dir) standsFor(name string) []inode {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.inUse[name]
}

// look is writable of a caller that has not called Check: another process may have a folder that stands in this one's place.
func (d *Dir) look() error {
	if lost, ok := errors.AsType[*LostError](d.Check()); ok {
		return lost
	}
	return d.writable()
}

// writable returns why nothing may be written any more, nil if it may.
func (d *Dir) writable() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.shut {
		return fmt.Errorf("data directory %s: %w", d.path, fs.ErrClosed)
	}
	return d.lost
}
