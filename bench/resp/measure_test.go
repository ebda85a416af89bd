package main

import (
	"bytes"
	"errors"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const good = `"test","rps","avg_latency_ms","min_latency_ms","p50_latency_ms","p95_latency_ms","p99_latency_ms","max_latency_ms"
"INCR bench","84033.61","0.338","0.088","0.327","0.471","0.559","2.031"
`

func TestParseCSV(t *testing.T) {
	t.Parallel()
	s, err := parseCSV(good)
	if err != nil || s.rate != 84033.61 || s.p50 != 0.327 || s.p99 != 0.559 {
		t.Errorf("got %+v, %v", s, err)
	}
	for _, bad := range []string{
		"", "Error from server: ERR leaf: unknown tag", strings.ReplaceAll(good, "rps", "x"), strings.ReplaceAll(good, "84033.61", "fast"),
		good + good,
	} {
		if _, err := parseCSV(bad); err == nil {
			t.Errorf("no error for %q", bad)
		}
	}
}

func TestMedianOfRatios(t *testing.T) {
	t.Parallel()
	var samples []sample
	for round, pair := range [][2]float64{{10, 20}, {30, 30}, {2000, 1000}} { // a noisy machine
		samples = append(samples, sample{server: "leaf", pipeline: 1, round: round, rate: pair[0]}, sample{server: "redis", pipeline: 1, round: round, rate: pair[1]})
	}
	if got := ratio(samples, 1); got != 1 {
		t.Errorf("got %v", got)
	}
	var text strings.Builder
	report(&text, samples, options{pipelines: []int{1}})
	if !strings.Contains(text.String(), "leaf / redis = 1.000, target at least 0.75: met") {
		t.Errorf("got %s", text.String())
	}
}

// TestServe starts and stops the server inside the test's process.
func TestServe(t *testing.T) {
	t.Parallel()
	stdin, stop := io.Pipe()
	lines, stdout := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- serve(stdout, stdin) }()
	line := make([]byte, 64)
	n, err := lines.Read(line)
	if err != nil {
		t.Fatal(err)
	}
	if err := check(t.Context(), &process{name: "leaf", addr: strings.TrimSpace(string(line[:n]))}); err != nil {
		t.Error(err)
	}
	stop.Close()
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-pipelines", "0"}, {"-pipelines", "x"}, {"-rounds", "0"}, {"-conns", "0"}, {"-slice", "10ms"}, {"rest"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("no error for %q", args)
		}
	}
	opt, err := parse([]string{"-pipelines", "1,8", "-o", filepath.Join("x", "y")})
	if err != nil || len(opt.pipelines) != 2 || opt.out != filepath.Join("x", "y") {
		t.Errorf("got %+v, %v", opt, err)
	}
}

func TestProgramsAreMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := run(t.Context(), nil, &bytes.Buffer{})
	if !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), "the Debian package is redis-") {
		t.Errorf("got %v", err)
	}
}
