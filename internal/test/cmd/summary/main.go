// Command summary reads the output of "go test -json" and prints what "go test"
// prints without it, followed by what that hides: which tests were skipped and
// why, and how many ran.
//
//	go test -json ./... | summary
//
// A test's own output is printed if it fails, and with -logs PART also if it passes,
// has logged something, such as the figures of a long run, and its package's path
// contains PART. The exit code is 0 if all
// packages passed, 1 if one failed or none was seen, and 2 if the input is not
// what "go test -json" writes.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	logs := flag.String("logs", "", "print what passing tests log, in packages whose path contains `PART`")
	flag.Parse()
	// A Ctrl-C ends "go test", and with it our input; what was seen is still told.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM)
	os.Exit(run(os.Stdin, os.Stdout, *logs))
}

// event is one line of "go test -json"; see "go doc test2json".
type event struct {
	Action     string
	Package    string
	ImportPath string // of a build's output
	Test       string
	Output     string
}

// name identifies a test in all packages.
type name struct{ pkg, test string }

// record is what was seen so far.
type record struct {
	out     io.Writer
	logs    string            // empty: none
	held    map[name][]string // output of tests that may still pass
	reasons map[string][]name // skipped tests by reason

	passed, failed, skipped int // tests
	packages, bad           int
}

func run(in io.Reader, out io.Writer, logs string) int {
	begin := time.Now()
	r := record{out: out, logs: logs, held: map[name][]string{}, reasons: map[string][]name{}}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if bad := json.Unmarshal(line, &e); bad != nil {
				fmt.Fprintf(out, "summary: not a line of go test -json: %s\n", strings.TrimSpace(string(line)))
				return 2
			}
			r.add(e)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			fmt.Fprintf(out, "summary: read: %v\n", err)
			return 2
		}
	}
	r.close(time.Since(begin))
	if r.bad > 0 || r.packages == 0 {
		return 1
	}
	return 0
}

func (r *record) add(e event) {
	key := name{e.Package, e.Test}
	switch {
	case e.Action == "output" && e.Test != "":
		r.held[key] = append(r.held[key], e.Output)
	case e.Action == "output", e.Action == "build-output":
		// "PASS" belongs to -v; "ok" follows it.
		if e.Output != "PASS\n" && !strings.HasPrefix(e.Output, "testing: warning: no tests to run") {
			fmt.Fprint(r.out, e.Output)
		}
	case e.Test == "":
		r.endPackage(e)
	case e.Action == "pass":
		r.passed++
		if r.logs != "" && strings.Contains(e.Package, r.logs) && slices.ContainsFunc(r.held[key], isLog) {
			r.release(key)
		}
		delete(r.held, key)
	case e.Action == "skip":
		r.skipped++
		r.reasons[reason(r.held[key])] = append(r.reasons[reason(r.held[key])], key)
		delete(r.held, key)
	case e.Action == "fail":
		r.failed++
		r.release(key)
	}
}

func (r *record) endPackage(e event) {
	switch e.Action {
	case "pass", "skip":
		r.packages++
	case "fail":
		r.packages++
		r.bad++
		// A crash ends tests without a word about them.
		for _, key := range slices.SortedFunc(maps.Keys(r.held), compare) {
			if key.pkg == e.Package {
				r.release(key)
			}
		}
	}
}

// release prints what a test said, without the lines that only -v shows.
func (r *record) release(key name) {
	for _, line := range r.held[key] {
		if !strings.HasPrefix(line, "=== ") {
			fmt.Fprint(r.out, line)
		}
	}
	delete(r.held, key)
}

func (r *record) close(took time.Duration) {
	for _, why := range slices.Sorted(maps.Keys(r.reasons)) {
		tests := r.reasons[why]
		fmt.Fprintf(r.out, "SKIPPED %d: %s\n", len(tests), why)
		for _, key := range tests {
			fmt.Fprintf(r.out, "    %s %s\n", key.pkg, key.test)
		}
	}
	fmt.Fprintf(r.out, "SUMMARY: %d packages, %d failed; %d tests: %d passed, %d failed, %d skipped; %v\n",
		r.packages, r.bad, r.passed+r.failed+r.skipped, r.passed, r.failed, r.skipped, took.Round(time.Second))
}

// isLog tells a test's own words from what "go test" says about it.
func isLog(line string) bool {
	line = strings.TrimSpace(line)
	return !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ")
}

// reason is what a skipped test said, without the position in the source, so
// that equal ones are listed together.
func reason(output []string) string {
	for _, line := range output {
		_, said, ok := strings.Cut(strings.TrimSpace(line), ".go:")
		if _, said, found := strings.Cut(said, ": "); ok && found && isLog(line) {
			return said
		}
	}
	return "no reason given"
}

func compare(a, b name) int { return strings.Compare(a.pkg+" "+a.test, b.pkg+" "+b.test) }
