//go:build unix

package app

import "golang.org/x/sys/unix"

// openFiles returns how many files this process may have open, 0 if it has no limit. Go
// has raised the soft limit to the hard one.
func openFiles() uint64 {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return 0
	}
	return uint64(l.Cur) //nolint:unconvert // it is signed on FreeBSD
}
