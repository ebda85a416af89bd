package main

import (
	"bytes"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mixed is the module that the tests run, without its packages. What they print needs neither
// go vet nor the tables of a debugger.
var mixed = []string{"go", "-C", "testdata/mixed", "test", "-vet=off", "-ldflags=-s", "-json"}

// TestMixed reads what this Go release really prints.
func TestMixed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		packages []string
		logs     string
		code     int
		want     []string // in the output, as regular expressions
		not      []string
	}{
		{
			"good",
			[]string{"./good", "./none"},
			"", 0,
			[]string{
				`(?m)^ok  \tmixed/good\t`,
				`(?m)^\?   \tmixed/none\t\[no test files\]$`,
				`SKIPPED 2: no server\n    mixed/good TestSkipA\n    mixed/good TestSkipB\n`,
				`SUMMARY: 2 packages, 0 failed; 3 tests: 1 passed, 0 failed, 2 skipped; \d+`,
			},
			[]string{"not shown", "=== RUN", "PASS"},
		},
		{
			"logs",
			[]string{"./good"},
			"mixed/go", 0,
			[]string{`--- PASS: TestPass`, `a_test.go:5: not shown`},
			[]string{"=== RUN"},
		},
		{
			"logs of other packages",
			[]string{"./good"},
			"mixed/bad", 0,
			[]string{`(?m)^ok  \tmixed/good\t`},
			[]string{"not shown"},
		},
		{
			"bad",
			[]string{"./good", "./bad"},
			"", 1,
			[]string{
				`--- FAIL: TestFail`, `a_test.go:8: shown`, `(?m)^FAIL\tmixed/bad\t`,
				`SUMMARY: 2 packages, 1 failed; 6 tests: 2 passed, 2 failed, 2 skipped`,
			},
			[]string{"not shown", "=== RUN"},
		},
		{
			"panic",
			[]string{"./panics"},
			"", 1,
			[]string{`panic: boom`, `(?m)^FAIL\tmixed/panics\t`, `SUMMARY: 1 packages, 1 failed`},
			nil,
		},
		{
			"broken build",
			[]string{"./broken"},
			"", 1,
			[]string{`a.go:3:13: cannot use "text"`, `FAIL\tmixed/broken \[build failed\]`, `SUMMARY: 1 packages, 1 failed`},
			nil,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if got := run(append(slices.Clone(mixed), tt.packages...), &out, tt.logs, 0, nil); got != tt.code {
				t.Errorf("exit code %d, want %d", got, tt.code)
			}
			for _, want := range tt.want {
				if !regexp.MustCompile(want).MatchString(out.String()) {
					t.Errorf("no match for %q", want)
				}
			}
			for _, not := range tt.not {
				if strings.Contains(out.String(), not) {
					t.Errorf("%q is there", not)
				}
			}
			if t.Failed() {
				t.Logf("output:\n%s", &out)
			}
		})
	}
}

func TestOtherCommands(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]int{
		"":                     2,
		"no-such-program":      2,
		"true":                 1,
		"false":                2,
		"echo ok pkg 0.1s":     2,
		"go test -no-such ./.": 2,
	} {
		var out bytes.Buffer
		if got := run(strings.Fields(command), &out, "", 3, nil); got != want {
			t.Errorf("run(%q) = %d, want %d", command, got, want)
		}
	}
}
