package sqldb

import (
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// otherNames returns how many names a file has in its filesystem, and whether path is the mount of this
// file alone, which has another name elsewhere. What the system does not tell is 0 and false.
func otherNames(path string, info fs.FileInfo) (names uint64, mounted bool) {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		names = uint64(s.Nlink) //nolint:unconvert // it has 32 bits on some processors
	}
	var s unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS, &s)
	return names, err == nil && s.Attributes&s.Attributes_mask&unix.STATX_ATTR_MOUNT_ROOT != 0
}
