package main

import (
	"bytes"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestMixed feeds the program what this Go release really prints.
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
			cmd := exec.Command("go", append([]string{"test", "-json"}, tt.packages...)...)
			cmd.Dir = "testdata/mixed"
			input, _ := cmd.Output() // fails where tests fail
			var out bytes.Buffer
			if got := run(bytes.NewReader(input), &out, tt.logs); got != tt.code {
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

func TestOtherInput(t *testing.T) {
	t.Parallel()
	for input, want := range map[string]int{"": 1, "ok  \tpkg\t0.1s\n": 2} {
		var out bytes.Buffer
		if got := run(strings.NewReader(input), &out, ""); got != want {
			t.Errorf("run(%q) = %d, want %d", input, got, want)
		}
	}
}
