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

const good = "INCR bench: rps=0.0 (overall: 0.0) avg_msec=-nan (overall: -nan)\r====== INCR bench ======\n" + `  200000 requests completed in 0.74 seconds

Latency by percentile distribution:
0.000% <= 0.255 milliseconds (cumulative count 16)
50.000% <= 1.319 milliseconds (cumulative count 100032)
99.805% <= 36.831 milliseconds (cumulative count 199616)
99.902% <= 37.311 milliseconds (cumulative count 199808)
100.000% <= 38.559 milliseconds (cumulative count 200000)

Cumulative distribution of latencies:
0.000% <= 0.103 milliseconds (cumulative count 0)
99.936% <= 38.111 milliseconds (cumulative count 199872)

Summary:
  throughput summary: 271002.72 requests per second
  latency summary (msec):
          avg       min       p50       p95       p99       max
        2.454     0.248     1.319     6.359    18.415    38.559
`

func TestParseReport(t *testing.T) {
	t.Parallel()
	s, err := parseReport(good)
	if err != nil || s.rate != 271002.72 || s.p50 != 1.319 || s.p99 != 18.415 || s.p999 != 37.311 {
		t.Errorf("got %+v, %v", s, err)
	}
	for name, bad := range map[string]string{
		"nothing":          "",
		"an error reply":   "Error from server: ERR leaf: unknown tag",
		"no throughput":    strings.ReplaceAll(good, "throughput", "x"),
		"not a number":     strings.ReplaceAll(good, "271002.72", "1.2.3"),
		"no p99":           strings.ReplaceAll(good, "p99 ", ""),
		"no step of 99.9%": strings.NewReplacer("99.902", "99.1", "100.000", "99.2", "99.936", "99.3").Replace(good),
	} {
		if _, err := parseReport(bad); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	var samples []sample
	for round, pair := range [][2]float64{{10, 20}, {30, 30}, {2000, 1000}} { // a noisy machine
		samples = append(samples, sample{server: "leaf", pipeline: 1, round: round, rate: pair[0]}, sample{server: "redis", pipeline: 1, round: round, rate: pair[1]})
	}
	if got := ratio(samples, 1); got != 1 {
		t.Errorf("got %v", got)
	}
	var text strings.Builder
	tabulate(&text, samples, options{pipelines: []int{1}})
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
	if err := check(t.Context(), strings.TrimSpace(string(line[:n]))); err != nil {
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
