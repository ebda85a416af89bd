package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// row explains a statement that no test reaches.
type row struct{ function, source, why string }

// sometimes begins the explanation of a statement that some runs reach: which of two
// goroutines comes first is not up to the test.
const sometimes = "Sometimes: "

// parseList reads the rows of the table whose head is | function | statement | why |.
func parseList(text string) ([]row, error) {
	var rows []row
	inside := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") {
			inside = false
			continue
		}
		const bar = "\x00"
		cells := strings.Split(strings.Trim(strings.ReplaceAll(line, `\|`, bar), "|"), "|")
		for i, c := range cells {
			cells[i] = strings.ReplaceAll(strings.Trim(strings.TrimSpace(c), "`"), bar, "|")
		}
		switch {
		case cells[0] == "function":
			inside = true
		case !inside || strings.Trim(cells[0], "-") == "":
		case len(cells) != 3 || cells[1] == "" || cells[2] == "":
			return nil, fmt.Errorf("a row needs function, statement and why: %s", line)
		default:
			rows = append(rows, row{cells[0], cells[1], cells[2]})
		}
	}
	return rows, nil
}

// report prints the figures and what was not reached, and returns what is wrong.
func report(out io.Writer, blocks []block, rows []row, floor float64) error {
	var packages []string
	all, reached := map[string]int{}, map[string]int{}
	for _, b := range blocks {
		if !slices.Contains(packages, b.pkg()) {
			packages = append(packages, b.pkg())
		}
		all[b.pkg()] += b.statements
		if b.reached {
			reached[b.pkg()] += b.statements
		}
	}
	if len(packages) == 0 {
		return errors.New("nothing was measured")
	}
	var errs []error
	for _, p := range packages {
		percent := 100 * float64(reached[p]) / float64(all[p])
		fmt.Fprintf(out, "%-10s %5.1f %%  %d of %d statements\n", p, percent, reached[p], all[p])
		if percent < floor {
			errs = append(errs, fmt.Errorf("%s: %.1f %% is below %.0f %%", p, percent, floor))
		}
	}
	rows = slices.Clone(rows)
	for _, b := range blocks {
		if b.reached {
			continue
		}
		// Two equal statements of a function have a row each.
		i := slices.IndexFunc(rows, func(r row) bool { return r.function == b.function && r.source == b.source })
		if i < 0 {
			fmt.Fprintf(out, "%s:%d: not reached: %s\n", b.file, b.line, b.source)
			errs = append(errs, fmt.Errorf("write a test for it, or a row:\n| %s | `%s` | why |", b.function, strings.ReplaceAll(b.source, "|", `\|`)))
			continue
		}
		fmt.Fprintf(out, "%s:%d: explained: %s\n", b.file, b.line, b.source)
		rows = slices.Delete(rows, i, i+1)
	}
	for _, r := range rows {
		there := slices.ContainsFunc(blocks, func(b block) bool { return r.function == b.function && r.source == b.source })
		if !there || !strings.HasPrefix(r.why, sometimes) {
			errs = append(errs, fmt.Errorf("remove the row, a test reaches it or it is gone: %s: %s", r.function, r.source))
		}
	}
	return errors.Join(errs...)
}
