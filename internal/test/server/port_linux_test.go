package server_test

import (
	"errors"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// TestPortsAreKeptWhileDown: the port of a killed server given to another test's
// server would fail the restart. Only Linux has the abstract sockets that keep them.
func TestPortsAreKeptWhileDown(t *testing.T) {
	t.Parallel()
	server.Require(t)
	for kind, start := range starters {
		t.Run(kind, func(t *testing.T) {
			if kind != "postgres" && kind != "etcd" {
				onlyLong(t)
			}
			t.Parallel()
			s, err := start(t.Context(), openFolder(t))
			if err != nil {
				t.Fatal(err)
			}
			s.kill()
			for _, addr := range s.addrs {
				if got := holder(t, addr); got != os.Getpid() {
					t.Errorf("%s is held by process %d, not by the test", addr, got)
				}
				if claims(t, addr) {
					t.Errorf("%s is anybody's while its server is down", addr)
				}
			}
			if err := s.close(); err != nil {
				t.Fatal(err)
			}
			for _, addr := range s.addrs {
				if holder(t, addr) == os.Getpid() {
					t.Errorf("%s is not free after Close", addr)
				}
			}
		})
	}
}

// socketOf returns the abstract socket that keeps the port of addr.
func socketOf(t *testing.T, addr string) string {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	return "@leaf-test-port-" + port
}

// holder returns the process that has chosen the port of addr, 0 if none has. Right after Close it may be
// another one.
func holder(t *testing.T, addr string) int {
	t.Helper()
	c, err := net.Dial("unix", socketOf(t, addr))
	if err != nil {
		return 0
	}
	defer c.Close()
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var peer *syscall.Ucred
	ended := raw.Control(func(fd uintptr) {
		peer, err = syscall.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
	})
	if err := errors.Join(err, ended); err != nil {
		t.Fatal(err)
	}
	return int(peer.Pid)
}

// claims reports whether another process could choose the port of addr.
func claims(t *testing.T, addr string) bool {
	t.Helper()
	l, err := net.Listen("unix", socketOf(t, addr))
	if err != nil {
		return false
	}
	l.Close()
	return true
}
