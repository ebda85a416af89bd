package main

import (
	"bytes"
	"errors"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-only", "smtp"}, {"-only", ""}, {"-rounds", "0"}, {"-slice", "10ms"}, {"rest"}, {"-peer", "x"}, {"-peer", "x= "}} {
		if _, err := parse(args); err == nil {
			t.Errorf("no error for %q", args)
		}
	}
	opt, err := parse([]string{"-peer", "a=b c", "-only", "http,grpc", "-o", filepath.Join("x", "y")})
	if err != nil || len(opt.only) != 2 || opt.out != filepath.Join("x", "y") {
		t.Errorf("got %+v, %v", opt, err)
	}
	if all := protocols(opt)[0].servers; all[len(all)-1].name != "a" {
		t.Errorf("the servers of HTTP are %v, want the peer at their end", all)
	}
}

func TestProgramsAreMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for protocol, debian := range map[string]string{"http": "wrk", "resp": "redis-"} {
		err := run(t.Context(), []string{"-only", protocol}, &bytes.Buffer{})
		if !errors.Is(err, exec.ErrNotFound) || !strings.Contains(err.Error(), "the Debian package is "+debian) {
			t.Errorf("%s: got %v", protocol, err)
		}
	}
}

// TestTable: the ratio is the median of those within a round, whatever the machine did.
func TestTable(t *testing.T) {
	t.Parallel()
	p := protocol{
		name: "x", servers: []server{{name: "leaf"}, {name: "peer"}, {name: "bare"}},
		loads: []load{{name: "y", targets: map[string]float64{"peer": 0.75, "bare": 1.1}}},
	}
	var samples []sample
	for round, rates := range [][2]float64{{10, 20}, {30, 30}, {2000, 1000}} { // a noisy machine
		for i, name := range []string{"leaf", "peer", "bare"} {
			samples = append(samples, sample{answers: answers{rate: rates[min(i, 1)]}, load: "y", server: name, round: round})
		}
	}
	var text strings.Builder
	tabulate(&text, p, samples)
	for _, want := range []string{"x, y, medians", "1.000 (at least 0.75: met)", "1.000 (at least 1.10: MISSED)"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in:\n%s", want, text.String())
		}
	}
}
