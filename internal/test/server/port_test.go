package server_test

import (
	"net"
	"runtime"
	"testing"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// TestPortsAreKeptWhileDown: the port of a killed server given to another test's
// server would fail the restart.
func TestPortsAreKeptWhileDown(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has abstract sockets")
	}
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
				if claims(t, addr) {
					t.Errorf("%s is anybody's while its server is down", addr)
				}
			}
			if err := s.close(); err != nil {
				t.Fatal(err)
			}
			for _, addr := range s.addrs {
				if !claims(t, addr) {
					t.Errorf("%s is not free after Close", addr)
				}
			}
		})
	}
}

// claims reports whether another process could choose the port of addr.
func claims(t *testing.T, addr string) bool {
	t.Helper()
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", "@leaf-test-port-"+port)
	if err != nil {
		return false
	}
	l.Close()
	return true
}
