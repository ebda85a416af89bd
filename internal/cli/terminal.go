package cli

import (
	"fmt"
	"strings"
)

// rowsThatFit returns a frame as the rows of a screen, broken at its width. Rows that do not fit are
// left out at the end and counted: a frame begins with what matters most, and a frame that is
// taller than its screen would scroll that away. The last row of the screen stays free for the
// cursor. A screen of unknown size, with 0 columns or rows, has room for everything.
func rowsThatFit(frame string, columns, height int) []string {
	var rows []string
	for line := range strings.Lines(frame) {
		rows = append(rows, breakAt(strings.TrimSuffix(line, "\n"), columns)...)
	}
	most := height - 1
	if height <= 0 || len(rows) <= most {
		return rows
	}
	if most < 1 {
		return nil
	}
	rest := fmt.Sprintf("(%d rows more; leaf status prints them)", len(rows)-most+1)
	return append(rows[:most-1], breakAt(rest, columns)[0])
}

// breakAt breaks a line into rows of at most so many columns, one at least. A character outside
// ASCII counts as two columns, which is the most that one takes.
func breakAt(line string, columns int) []string {
	if columns <= 0 {
		return []string{line}
	}
	var rows []string
	begin, width := 0, 0
	for at, r := range line {
		wide := 1
		if r > '~' {
			wide = 2
		}
		if width += wide; width > columns && at > begin {
			rows = append(rows, line[begin:at])
			begin, width = at, wide
		}
	}
	return append(rows, line[begin:])
}
