//go:build unix

package ownership

import (
	"io/fs"
	"os"
	"syscall"
)

// Inherit makes a file that root has made the property of the owner of another file or folder.
// For other users it does nothing. Where the system refuses it, the file stays root's.
func Inherit(f interface{ Chown(uid, gid int) error }, from fs.FileInfo) {
	if os.Geteuid() != 0 {
		return
	}
	if owner, ok := from.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 {
		_ = f.Chown(int(owner.Uid), int(owner.Gid))
	}
}

// Of returns the user and the group that own a file.
func Of(file fs.FileInfo) (user, group int) {
	if owner, ok := file.Sys().(*syscall.Stat_t); ok {
		return int(owner.Uid), int(owner.Gid)
	}
	return os.Geteuid(), os.Getegid()
}
