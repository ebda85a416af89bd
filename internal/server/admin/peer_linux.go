package admin

import (
	"net"
	"syscall"
)

// peer returns the user and the process at the other end of a Unix socket.
func peer(c *net.UnixConn) (uid, pid int, ok bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return 0, 0, false
	}
	var cred *syscall.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err != nil || credErr != nil {
		return 0, 0, false
	}
	return int(cred.Uid), int(cred.Pid), true
}
