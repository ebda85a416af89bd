package servertest

import (
	"net"
	"testing"
)

// Listen returns a listener on addr, which is closed at the end of the test.
func Listen(t testing.TB, addr string) net.Listener {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	return ln
}
