package port_test

import (
	"context"
	"net"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
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
	l, err := p.Listen(t.Context())
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

// TestListenBesideChildren: the listener that was closed a moment ago may live on in a
// child that is being started.
func TestListenBesideChildren(t *testing.T) {
	p, err := port.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	ctx, stop := context.WithCancel(t.Context())
	var children sync.WaitGroup
	for range 4 {
		children.Go(func() {
			for ctx.Err() == nil {
				_ = exec.Command("true").Run()
			}
		})
	}
	for range 500 {
		l, err := p.Listen(t.Context())
		if err != nil {
			t.Error(err)
			break
		}
		_ = l.Close()
	}
	stop()
	children.Wait()
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
