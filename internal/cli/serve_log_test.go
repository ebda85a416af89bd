package cli_test

import (
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/cli"
)

// TestNodeEndsBesideAFullLog: the pipe of the log is full, and no program reads it. A node that fails ends
// with its exit code all the same.
func TestNodeEndsBesideAFullLog(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	args := []string{"serve", "--data-dir", t.TempDir(), "--http-addr", taken.Addr().String(), "--grpc-addr", "off", "--resp-addr", "off", "--admin-addr", "off"}
	var text strings.Builder
	if code := cli.Run(t.Context(), cli.Process{Args: args, Stdout: &text, Stderr: &text}); code != 2 || strings.Count(text.String(), "address already in use") != 1 {
		t.Fatalf("code %d: %s", code, &text)
	}
	unread, full, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unread.Close(); _ = full.Close() })
	if err := full.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = full.Write(make([]byte, 4096))
	}
	if err := full.SetWriteDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan int, 1)
	go func() { ended <- cli.Run(t.Context(), cli.Process{Args: args, Stdout: full, Stderr: full}) }()
	select {
	case code := <-ended:
		if code != 2 {
			t.Errorf("code %d", code)
		}
	case <-time.After(20 * time.Second):
		t.Error("the node does not end")
	}
}
