package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"
)

// TestAgain has tests that fail once, or each time.
func TestAgain(t *testing.T) {
	for _, tt := range []struct {
		name     string
		text     string // of the failure that happens once
		packages []string
		code     int
		want     string // in the output, as a regular expression
	}{
		{"once", "late", []string{"./flaky", "./good"}, 0, `AGAIN, 3 times: mixed/flaky TestOnce\n(?s:.*)6 passed, 0 failed(?s:.*)\nFAILED ONCE 1: passed 3 times when run again\n    mixed/flaky TestOnce\n$`},
		{"each time", "late", []string{"./bad"}, 1, `AGAIN, 3 times: mixed/bad TestFail\n`},
		{"one of each", "late", []string{"./bad", "./flaky"}, 1, `AGAIN, 3 times: mixed/bad TestFail\n`},
		{"repeated ID", "ID 7 was issued twice", []string{"./flaky"}, 1, `NOT TRIED AGAIN: mixed/flaky: .*ID 7 was issued twice\n$`},
		{"a promise that was kept", "kept: no ID twice: 0 repeated", []string{"./flaky"}, 0, `AGAIN, 3 times: mixed/flaky TestOnce\n`},
		{"advice of an alarm", `msg=latched do="run \"leaf\", or numbers repeat"`, []string{"./flaky"}, 0, `AGAIN, 3 times: mixed/flaky TestOnce\n`},
		{"what an alarm says", `msg="an ID repeats" do="stop"`, []string{"./flaky"}, 1, `NOT TRIED AGAIN: mixed/flaky: .*an ID repeats`},
		{"race", "WARNING: DATA RACE", []string{"./flaky"}, 1, `NOT TRIED AGAIN: mixed/flaky: .*DATA RACE\n$`},
		{"panic", "", []string{"./panics"}, 1, `NOT TRIED AGAIN: mixed/panics: panic: boom`},
		{"broken build", "", []string{"./broken"}, 1, `NOT TRIED AGAIN: mixed/broken: it failed without a test that did\n$`},
		{"end of the process", "", []string{"./exits"}, 1, `NOT TRIED AGAIN: mixed/exits: `},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("FLAKY", filepath.Join(t.TempDir(), "failed"))
			t.Setenv("FLAKY_TEXT", tt.text)
			var out bytes.Buffer
			if got := run(slices.Concat(mixed, []string{"-count=1"}, tt.packages), &out, "", 3, nil); got != tt.code {
				t.Errorf("exit code %d, want %d", got, tt.code)
			}
			if !regexp.MustCompile(tt.want).MatchString(out.String()) {
				t.Errorf("no match for %q", tt.want)
			}
			if t.Failed() {
				t.Logf("output:\n%s", &out)
			}
		})
	}
}

// TestNotAgainAfterASignal is a run that somebody ends.
func TestNotAgainAfterASignal(t *testing.T) {
	t.Setenv("FLAKY", filepath.Join(t.TempDir(), "failed"))
	stop := make(chan os.Signal, 1)
	stop <- os.Interrupt
	var out bytes.Buffer
	if code := run(slices.Concat(mixed, []string{"-count=1", "./flaky"}), &out, "", 3, stop); code != 1 || bytes.Contains(out.Bytes(), []byte("AGAIN")) {
		t.Errorf("exit code %d\n%s", code, &out)
	}
}

// TestTooManyToTryAgain has more failures than a busy machine causes.
func TestTooManyToTryAgain(t *testing.T) {
	t.Parallel()
	r := &record{failures: map[string]*failure{"p": {failed: true, tests: []string{"A", "B", "C"}}, "q": {failed: true, tests: []string{"A", "B", "C"}}}}
	var out bytes.Buffer
	r.out = &out
	if code := r.tryAgain([]string{"false"}, 1); code != 1 || out.String() != "NOT TRIED AGAIN: 6 tests failed, more than 5\n" {
		t.Errorf("%d, %q", code, &out)
	}
}
