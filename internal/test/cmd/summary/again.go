package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A test that runs beside a hundred others on two processors can fail because the
// machine stood still for a second. Run once more when the others have ended, it
// passes. A test that fails because the code is wrong seldom does.
//
// Nothing is excused that a busy machine cannot cause: a package that does not build,
// a crash, a data race, an ID that came twice, or more failures than the machine
// alone would cause.
const most = 5

// grave is what a test says of a failure that no busy machine causes. It matches too
// much rather than too little: then a test that only failed once fails the run.
var grave = regexp.MustCompile(`(?i)data race|panic|fatal error|twice|duplicate|repeat|both|overlap`)

// advice is what an alarm in the log of a node tells to do. It may speak of IDs that repeat.
var advice = regexp.MustCompile(` do="(\\.|[^"\\])*"`)

// failure is what went wrong in one package.
type failure struct {
	failed bool
	tests  []string // those at the top level, sorted
	grave  string   // why nothing of it is tried again; empty: it is
}

func (r *record) failure(pkg string) *failure {
	if r.failures[pkg] == nil {
		r.failures[pkg] = &failure{}
	}
	return r.failures[pkg]
}

// add notes that a test failed, and what it said.
func (f *failure) add(test string, output []string) {
	for _, line := range output {
		f.heed(line)
	}
	top, _, _ := strings.Cut(test, "/")
	if at, found := slices.BinarySearch(f.tests, top); !found {
		f.tests = slices.Insert(f.tests, at, top)
	}
}

// heed looks for something grave in a line of output.
func (f *failure) heed(line string) {
	// The name of a test is not what it says, and a promise that was kept is not grave.
	said := advice.ReplaceAllString(line, "")
	if f.grave == "" && isLog(line) && !strings.Contains(line, ": kept: ") && grave.MatchString(said) {
		f.grave = strings.TrimSpace(line)
	}
}

// tryAgain runs what failed times more, a package at a time, and returns the exit
// code. The packages of command begin with a point and come last.
func (r *record) tryAgain(command []string, times int) int {
	var failed []string
	tests := 0
	for _, pkg := range slices.Sorted(maps.Keys(r.failures)) {
		f := r.failures[pkg]
		if !f.failed {
			continue
		}
		if len(f.tests) == 0 && f.grave == "" {
			f.grave = "it failed without a test that did"
		}
		if f.grave != "" {
			fmt.Fprintf(r.out, "NOT TRIED AGAIN: %s: %s\n", pkg, f.grave)
			return 1
		}
		failed = append(failed, pkg)
		tests += len(f.tests)
	}
	if tests == 0 {
		return 1 // nothing ran at all
	}
	if tests > most {
		fmt.Fprintf(r.out, "NOT TRIED AGAIN: %d tests failed, more than %d\n", tests, most)
		return 1
	}
	if at := slices.IndexFunc(command, func(arg string) bool { return strings.HasPrefix(arg, ".") }); at >= 0 {
		command = command[:at]
	}
	for _, pkg := range failed {
		names := strings.Join(r.failures[pkg].tests, "|")
		fmt.Fprintf(r.out, "AGAIN, %d times: %s %s\n", times, pkg, names)
		again := slices.Concat(command, []string{"-count", strconv.Itoa(times), "-run", "^(" + names + ")$", pkg})
		if _, code := try(again, r.out, ""); code != 0 {
			return code
		}
	}
	fmt.Fprintf(r.out, "FAILED ONCE %d: passed %d times when run again\n", tests, times)
	for _, pkg := range failed {
		for _, test := range r.failures[pkg].tests {
			fmt.Fprintf(r.out, "    %s %s\n", pkg, test)
		}
	}
	return 0
}
