package main

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParseWrk(t *testing.T) {
	t.Parallel()
	const good = `Running 3s test @ http://127.0.0.1:1/
  1 threads and 16 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   205.52us  511.33us   9.42ms   94.90%
  Latency Distribution
     50%   81.00us
     75%  100.00us
     90%  268.00us
     99%    2.81ms
  408010 requests in 3.10s, 62.45MB read
Requests/sec: 131616.53
Transfer/sec:     20.15MB
99.9% 5190us
`
	s, n, err := parseWrk(good)
	if err != nil || s.rate != 131616.53 || n != 408010 || s.p50 != 81*time.Microsecond || s.p99 != 2810*time.Microsecond || s.p999 != 5190*time.Microsecond {
		t.Errorf("got %+v, %v, %v", s, n, err)
	}
	for _, trouble := range []string{
		"  Socket errors: connect 0, read 5, write 0, timeout 0\n",
		"  Non-2xx or 3xx responses: 7\n",
	} {
		if _, _, err := parseWrk(good + trouble); err == nil {
			t.Errorf("no error for %q", trouble)
		}
	}
	if _, _, err := parseWrk("unable to connect"); err == nil {
		t.Error("no error for nonsense")
	}
}

func TestMedianOfRatios(t *testing.T) {
	t.Parallel()
	var samples []sample
	for round, pair := range [][2]float64{{10, 20}, {30, 30}, {2000, 1000}} { // a noisy machine
		samples = append(samples, sample{server: "a", conns: 1, round: round, rate: pair[0]}, sample{server: "b", conns: 1, round: round, rate: pair[1]})
	}
	if got := ratio(samples, "a", "b", 1); got != 1 {
		t.Errorf("got %v", got)
	}
}

// TestContendersServe starts and stops each server inside the test's process.
func TestContendersServe(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"leaf", "bare-fast", "bare-net"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stdin, stop := newGate()
			stdout := make(chan string, 1)
			done := make(chan error, 1)
			go func() { done <- serve(name, lineWriter(stdout), stdin) }()
			select {
			case addr := <-stdout:
				if err := check(t.Context(), address(strings.TrimSpace(addr))); err != nil {
					t.Error(err)
				}
				stop()
				if err := <-done; err != nil {
					t.Error(err)
				}
			case err := <-done:
				t.Fatal(err)
			}
		})
	}
	if err := serve("other", &bytes.Buffer{}, &bytes.Buffer{}); err == nil {
		t.Error("no error for an unknown server")
	}
}

// gate is a reader that ends when it is told to.
type gate chan struct{}

func newGate() (r gate, stop func()) {
	g := make(gate)
	return g, func() { close(g) }
}

func (g gate) Read([]byte) (int, error) {
	<-g
	return 0, context.Canceled
}

type lineWriter chan string

func (w lineWriter) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}

func TestFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-conns", "0"}, {"-conns", "x"}, {"-rounds", "0"}, {"-slice", "10ms"}, {"rest"}, {"-extra", "x"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("no error for %q", args)
		}
	}
	opt, err := parse([]string{"-extra", "a=b c", "-o", filepath.Join("x", "y")})
	if err != nil || len(opt.extra) != 1 || opt.extra[0].name != "a" || len(opt.extra[0].command) != 2 || opt.out != filepath.Join("x", "y") {
		t.Errorf("got %+v, %v", opt, err)
	}
}

func TestWrkIsMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	err := run(t.Context(), nil, &bytes.Buffer{})
	if !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), "Debian package is wrk") {
		t.Errorf("got %v", err)
	}
}
