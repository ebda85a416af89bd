package cli_test

import (
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/leaf-idgen/leaf/internal/cli"
)

// TestTerminalHasASize: what a terminal of 20 x 4 characters is sent fits on it.
func TestTerminalHasASize(t *testing.T) {
	t.Parallel()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = screen.Close() }()
	fd := int(screen.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 4, Col: 20}); err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = terminal.Close() }()
	if err := cli.Repaint(terminal, strings.Repeat("a row of a frame that is too long\n", 3)); err != nil {
		t.Fatal(err)
	}
	const want = "\x1b[H\x1b[Ka row of a frame tha\r\n\x1b[Kt is too long\r\n\x1b[K(4 rows more; leaf s\r\n\x1b[J"
	sent := make([]byte, 1000)
	n, err := io.ReadAtLeast(screen, sent, len(want)) // one read may bring a part
	if err != nil || string(sent[:n]) != want {
		t.Errorf("%q, %v; want %q", sent[:n], err, want)
	}
}
