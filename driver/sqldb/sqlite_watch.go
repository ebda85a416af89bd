package sqldb

import (
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
)

// sqliteWatch knows the open connections to a database file, and whether one of them
// lost its files.
type sqliteWatch struct {
	path string

	mu    sync.Mutex
	conns map[*sqliteConn]bool
	lost  error       // the first ErrFileLost
	alone fs.FileInfo // the database file whose -wal or -shm was lost; nil: none
}

func (w *sqliteWatch) add(c *sqliteConn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[c] = true
}

// remove is called before SQLite closes the connection: the last one takes the -wal and
// the -shm with it.
func (w *sqliteWatch) remove(c *sqliteConn) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.conns, c)
}

func (w *sqliteWatch) has(c *sqliteConn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.conns[c]
}

// lose notes that a connection to the database file lost it, or only its -wal or -shm.
func (w *sqliteWatch) lose(err error, file fs.FileInfo, beside bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if beside {
		w.alone = file
	}
	if w.lost == nil {
		w.lost = err
	}
	return err
}

// torn returns ErrFileLost if a database file is the one whose -wal or -shm was lost.
func (w *sqliteWatch) torn(file fs.FileInfo) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.alone == nil || !os.SameFile(w.alone, file) {
		return nil
	}
	return w.lost
}

func (w *sqliteWatch) check() error {
	w.mu.Lock()
	lost, conns := w.lost, slices.Collect(maps.Keys(w.conns))
	w.mu.Unlock()
	for _, c := range conns {
		if lost != nil {
			break
		}
		lost = c.named()
	}
	return lost
}

// CheckFile compares the files of an embedded database that this process has open with
// what their paths name now. Once one was gone or another one it returns ErrFileLost for
// ever: what this process committed may be in no file that others see. It returns nil for
// a database on a server, and reads no content.
func (s *Store) CheckFile() error {
	if s.file == nil {
		return nil
	}
	return s.file.check()
}

// CheckFile is Store.CheckFile of the registry's database.
func (r *Records) CheckFile() error { return r.store.CheckFile() }
