package main

import (
	"errors"
	"flag"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"-protocols", "ftp"},
		{"-protocols", ""},
		{"-parts", "disk"},
		{"-slice", "10ms"},
		{"-warm-up", "-1s"},
		{"-deadline", "0s"},
		{"-delay", "-1s"},
		{"-tags", "0"},
		{"-conns", "0"},
		{"-rounds", "0"},
		{"rest"},
		{"-unknown"},
	} {
		if _, err := parse(args, io.Discard); err == nil {
			t.Errorf("no error for %q", args)
		}
	}
	opt, err := parse([]string{"-protocols", "resp,http", "-parts", "cpu", "-slice", "2s", "-o", filepath.Join("x", "y")}, io.Discard)
	if err != nil || len(opt.protocols) != 2 || opt.protocols[0] != "resp" || len(opt.parts) != 1 || opt.slice != 2*time.Second || opt.out != filepath.Join("x", "y") {
		t.Errorf("got %+v, %v", opt, err)
	}
	var help strings.Builder
	if _, err := parse([]string{"--help"}, &help); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "go run ./bench/overload [flags]") {
		t.Errorf("%v, %s", err, help.String())
	}
}

// TestRun runs both parts on real servers with the smallest load, over one protocol, or
// over all with LEAF_LONG=1. It asks for figures and no duplicates, and not for the
// bounds: they need a machine for themselves.
func TestRun(t *testing.T) {
	server.Require(t)
	opt, err := parse([]string{"-slice", "200ms", "-warm-up", "100ms", "-tags", "100", "-conns", "4", "-delay", "1ms", "-rounds", "1"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	opt.settle = time.Millisecond
	if !long.Asked() {
		opt.protocols = []string{"resp"}
	}
	var progress strings.Builder
	phases, version, err := measure(t.Context(), opt, &progress)
	if err != nil {
		t.Fatal(err)
	}
	if len(phases) != len(opt.protocols)*(5+2) || version == "" {
		t.Fatalf("%d loads on MariaDB %q: %s", len(phases), version, progress.String())
	}
	for _, p := range phases {
		if p.twice > 0 {
			t.Errorf("%s over %s, %s: %d IDs came twice", p.part, p.protocol, p.load, p.twice)
		}
		if p.noHint > 0 || p.count[broken] > 0 || p.count[issued] == 0 || p.before == 0 || p.peak < p.before/2 {
			t.Errorf("%s over %s, %s: %d asked, %v, %d without a hint, %+v", p.part, p.protocol, p.load, p.asked, p.count, p.noHint, p.memory)
		}
	}
	var text strings.Builder
	tabulate(&text, phases, opt)
	if got := text.String(); strings.Count(got, "\nresp ") != 7 || !strings.Contains(got, " bounds hold\n") {
		t.Errorf("the report is\n%s", got)
	}
}
