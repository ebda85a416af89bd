//go:build !unix

package cli

import "io"

// screenSize returns the size of a terminal in characters, 0 if it is not known.
func screenSize(io.Writer) (columns, rows int) { return 0, 0 }
