package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

const source = `package p

type T[X any] struct{}

func (t *T[X]) Do(a bool) int {
	if a { // why
		return 1
	}
	return 2
}

func Same(a, b bool) error {
	switch {
	case a || b:
		panic("a")
	}
	return nil
}
`

// profile has Do's inner return reached by one test binary of two, and nothing of Same
// but its end.
const profile = `mode: set
m/p/p.go:5.31,6.7 1 1
m/p/p.go:6.7,8.3 1 0
m/p/p.go:6.7,8.3 1 1
m/p/p.go:9.2,9.10 1 0
m/p/p.go:12.28,13.9 1 1
m/p/p.go:14.14,15.13 1 0
m/p/p.go:17.2,17.12 1 1
m/p/p.go:12.28,12.28 0 0
`

const good = "# Words\n\n| a | b |\n| --- | --- |\n| x | y |\n\n| function | statement | why |\n| --- | --- | --- |\n" +
	"| p.T.Do | `return 2` | it cannot be |\n| p.Same | `case a \\|\\| b: panic(\"a\")` | it must not be |\n"

func TestReport(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, list string
		floor      float64
		want       []string // lines of the error
	}{
		{"all explained", good, 50, nil},
		{"too little", good, 90, []string{"p: 66.7 % is below 90 %"}},
		{
			"not explained", strings.Replace(good, "return 2", "return 3", 1), 50,
			[]string{"write a test for it, or a row:", "| p.T.Do | `return 2` | why |", "remove the row, a test reaches it or it is gone: p.T.Do: return 3"},
		},
		{
			"explained twice", good + "| p.T.Do | `return 2` | it cannot be |\n", 50,
			[]string{"remove the row, a test reaches it or it is gone: p.T.Do: return 2"},
		},
		{
			"gone, and reached in some runs", good + "| p.T.Do | `if a { return 7` | Sometimes: a race |\n", 50,
			[]string{"remove the row, a test reaches it or it is gone: p.T.Do: if a { return 7"},
		},
		{"reached in some runs", good + "| p.T.Do | `if a { return 1` | Sometimes: a race |\n", 50, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			rows, err := parseList(tt.list)
			if err != nil {
				t.Fatal(err)
			}
			blocks, err := parseProfile(profile, "m")
			if err != nil {
				t.Fatal(err)
			}
			if err := locate(fstest.MapFS{"p/p.go": {Data: []byte(source)}}, blocks); err != nil {
				t.Fatal(err)
			}
			var out bytes.Buffer
			var got []string
			if err := report(&out, blocks, rows, tt.floor); err != nil {
				got = strings.Split(err.Error(), "\n")
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s\n%s", diff, &out)
			}
			if !strings.Contains(out.String(), "4 of 6 statements") {
				t.Errorf("the figures are missing:\n%s", &out)
			}
		})
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "m/p/p.go:5.31,6.7 1 1\n", "mode: set\nm/p/p.go 1 1\n", "mode: set\nm/p/p.go:5.31,6 1 1\n"} {
		if blocks, err := parseProfile(text, "m"); err == nil {
			t.Errorf("%q is read as %v", text, blocks)
		}
	}
	for _, line := range []string{"| p.F | `x` |", "| p.F | `x` | |", "| p.F | | why |"} {
		if rows, err := parseList("| function | statement | why |\n| --- | --- | --- |\n" + line); err == nil {
			t.Errorf("%q is read as %v", line, rows)
		}
	}
	if err := report(&bytes.Buffer{}, nil, nil, 0); err == nil {
		t.Error("nothing was measured, and all is well")
	}
}

// TestListIsReadable: the committed table.
func TestListIsReadable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "COVERAGE.md"))
	if err != nil {
		t.Fatal(err)
	}
	if rows, err := parseList(string(text)); err != nil || len(rows) == 0 {
		t.Errorf("%d rows, %v", len(rows), err)
	}
}
