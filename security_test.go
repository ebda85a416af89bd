package leaf_test

import (
	"regexp"
	"strings"
	"testing"
)

// testList is the last column of a row of docs/SECURITY.md: packages, each with its tests.
var testList = regexp.MustCompile("([a-z]+(?:/[a-z]+)*)((?:,? `Test[A-Za-z0-9]+`)+)")

// TestThreatsNameTheirTests: each threat of docs/SECURITY.md names a test, and the tests exist.
func TestThreatsNameTheirTests(t *testing.T) {
	_, table, found := strings.Cut(read(t, "docs/SECURITY.md"), "\n| threat | what holds | tests |\n| --- | --- | --- |\n")
	if !found {
		t.Fatal("docs/SECURITY.md has no table of threats")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	rows := strings.Split(table, "\n")
	if len(rows) < 10 {
		t.Errorf("only %d threats were found", len(rows))
	}
	for _, row := range rows {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		lists := testList.FindAllStringSubmatch(cells[len(cells)-1], -1)
		if len(cells) != 3 || len(lists) == 0 {
			t.Errorf("this row names no test: %s", row)
		}
		for _, list := range lists {
			for name := range strings.SplitSeq(list[2], "`") {
				if strings.HasPrefix(name, "Test") && !hasTest(t, list[1], name) {
					t.Errorf("%s has no test %s", list[1], name)
				}
			}
		}
	}
}
