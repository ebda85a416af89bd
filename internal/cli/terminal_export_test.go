package cli

import "io"

// RowsThatFit is rowsThatFit.
func RowsThatFit(frame string, columns, height int) []string {
	return rowsThatFit(frame, columns, height)
}

// Repaint is repaint of a terminal.
func Repaint(w io.Writer, frame string) error { return repaint(w, frame, true) }
