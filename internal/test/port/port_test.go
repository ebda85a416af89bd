package port_test

import (
	"net"
	"runtime"
	"strconv"
	"testing"

	"github.com/leaf-idgen/leaf/internal/test/port"
)

// TestPortIsOurs: from Claim to Release, whether somebody listens or not.
func TestPortIsOurs(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has abstract sockets")
	}
	p, err := port.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if claimable(p.Number) {
		t.Error("anybody can claim the port while nobody listens on it")
	}
	p.Release()
	p.Release()
	if !claimable(p.Number) {
		t.Error("nobody can claim the port after Release")
	}
}

// TestUnused: the address refuses connections.
func TestUnused(t *testing.T) {
	conn, err := net.Dial("tcp", port.Unused(t))
	if err == nil {
		_ = conn.Close()
		t.Error("somebody listens on it")
	}
}

// claimable reports whether another process could claim the port.
func claimable(number int) bool {
	l, err := net.Listen("unix", "@leaf-test-port-"+strconv.Itoa(number))
	if err != nil {
		return false
	}
	_ = l.Close()
	return true
}
