//go:build unix

package cli

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// screenSize returns the size of a terminal in characters, 0 if it is not known.
func screenSize(w io.Writer) (columns, rows int) {
	f, ok := w.(*os.File)
	if !ok {
		return 0, 0
	}
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return int(size.Col), int(size.Row)
}
