package cli_test

import (
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestServeTellsSystemd: leaf serve tells the socket that its environment names when it
// serves.
func TestServeTellsSystemd(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	socket := filepath.Join(dataDir(t), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	p := serveAs(t, dir, "env", "NOTIFY_SOCKET="+socket, "leaf", "serve", "--data-dir", dir, "--http-addr", "127.0.0.1:0")
	if err := conn.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for heard, message := "", make([]byte, 1<<16); !strings.Contains(heard, "READY=1"); {
		n, err := conn.Read(message)
		if err != nil {
			t.Fatalf("%v, after %q", err, heard)
		}
		heard += string(message[:n]) + "\n"
	}
	p.end(t, syscall.SIGTERM)
}
