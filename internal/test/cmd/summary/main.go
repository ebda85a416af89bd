// Command summary runs "go test -json" and prints what "go test" prints without
// it, followed by what that hides: which tests were skipped and why, and how many
// ran.
//
//	summary [-logs PART] [-again N] go test -json ./...
//
// A test's own output is printed if it fails, and with -logs PART also if it passes,
// has logged something, such as the figures of a long run, and its package's path
// contains PART. The exit code is 0 if all packages passed, 1 if one failed or none
// was seen, and 2 if the command does not begin or does not print what
// "go test -json" prints.
//
// With -again N, failed tests run N times more after all others have ended, and the
// exit code is 0 if they pass each time; see again.go.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	logs := flag.String("logs", "", "print what passing tests log, in packages whose path contains `PART`")
	again := flag.Int("again", 0, "run failed tests `N` times more; if they pass each time, only tell")
	flag.Parse()
	// A Ctrl-C reaches "go test" too, and ends it; what was seen is still told. A signal
	// that is ignored would be ignored there as well.
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGINT, syscall.SIGTERM)
	os.Exit(run(flag.Args(), os.Stdout, *logs, *again, stop))
}

// run runs command, and if again is not 0 the tests that failed again times more,
// unless a signal came.
func run(command []string, out io.Writer, logs string, again int, stop <-chan os.Signal) int {
	r, code := try(command, out, logs)
	if code == 1 && again > 0 && len(stop) == 0 {
		return r.tryAgain(command, again)
	}
	return code
}

// try runs command once.
func try(command []string, out io.Writer, logs string) (*record, int) {
	if len(command) == 0 {
		fmt.Fprintln(out, "summary: no command; see summary -help")
		return nil, 2
	}
	cmd := exec.Command(command[0], command[1:]...) //nolint:noctx // ended by signals
	cmd.Stderr = os.Stderr
	input, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintf(out, "summary: %v\n", err)
		return nil, 2
	}
	r, err := read(input, out, logs)
	if err != nil {
		fmt.Fprintf(out, "summary: %v\n", err)
		// Nobody reads on, so it ends at its next write.
		input.Close()
		_ = cmd.Wait() // the first error says more
		return r, 2
	}
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); err != nil && (r.bad == 0 || !errors.As(err, &exit)) {
		fmt.Fprintf(out, "summary: %s: %v\n", command[0], err)
		return r, 2
	}
	if r.bad > 0 || r.packages == 0 {
		return r, 1
	}
	return r, 0
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
	// failures by package; what passed has none, unless its package said something grave.
	failures map[string]*failure

	passed, failed, skipped int // tests
	packages, bad           int
}

// read reads what "go test -json" prints until it ends.
func read(in io.Reader, out io.Writer, logs string) (*record, error) {
	begin := time.Now()
	r := &record{out: out, logs: logs, held: map[name][]string{}, reasons: map[string][]name{}, failures: map[string]*failure{}}
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if bad := json.Unmarshal(line, &e); bad != nil {
				return r, fmt.Errorf("not a line of go test -json: %s", strings.TrimSpace(string(line)))
			}
			r.add(e)
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return r, fmt.Errorf("read: %w", err)
		}
	}
	r.close(time.Since(begin))
	return r, nil
}

func (r *record) add(e event) {
	key := name{e.Package, e.Test}
	switch {
	case e.Action == "output" && e.Test != "":
		r.held[key] = append(r.held[key], e.Output)
	case e.Action == "output", e.Action == "build-output":
		r.failure(e.Package).heed(e.Output)
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
		r.failure(e.Package).add(e.Test, r.held[key])
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
		r.failure(e.Package).failed = true
		// A crash ends tests without a word about them.
		for _, key := range slices.SortedFunc(maps.Keys(r.held), compare) {
			if key.pkg == e.Package {
				r.failure(e.Package).grave = "the package ended before its tests"
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
