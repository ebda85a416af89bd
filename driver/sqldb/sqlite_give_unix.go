//go:build unix

package sqldb

import (
	"os"
	"path/filepath"
	"syscall"
)

// give makes a database that root has made the property of the owner of its folder: a command
// of an administrator must not leave one that the node cannot open. SQLite gives the -wal and
// the -shm to the owner of the database. Where the system refuses it, the file is root's.
func give(f *os.File) {
	if os.Geteuid() != 0 {
		return
	}
	info, err := os.Stat(filepath.Dir(f.Name()))
	if err != nil {
		return
	}
	if folder, ok := info.Sys().(*syscall.Stat_t); ok && folder.Uid != 0 {
		_ = f.Chown(int(folder.Uid), int(folder.Gid))
	}
}
