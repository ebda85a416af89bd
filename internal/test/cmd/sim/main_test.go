package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/sim"
)

func runs(t *testing.T, change func(*options)) (string, error) {
	t.Helper()
	var out strings.Builder
	o := options{out: &out, progress: io.Discard, campaign: sim.Campaign{First: 1, Seeds: 2}}
	change(&o)
	err := run(context.Background(), o)
	return out.String(), err
}

// TestReport: a campaign ends with its figures.
func TestReport(t *testing.T) {
	out, err := runs(t, func(o *options) { o.campaign.Twice = true })
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"seeds          2, 0 failed", "fewest nodes", string(sim.Crash), "every invariant held"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// TestCutShort: what was interrupted does not count as held; a limit of time that was
// asked for does.
func TestCutShort(t *testing.T) {
	for _, tt := range []struct {
		name  string
		ended bool
		o     options
		want  string
		err   error
	}{
		{"interrupted", true, options{}, "CUT SHORT: ", errCut},
		{"interrupted hunt", true, options{hunt: true}, "", errCut},
		{"limited", false, options{timeout: 1}, "of 1000000 seeds that began within 1ns", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			if tt.ended {
				cancel()
			}
			var out strings.Builder
			tt.o.out, tt.o.progress, tt.o.campaign = &out, io.Discard, sim.Campaign{First: 1, Seeds: 1_000_000}
			if err := run(ctx, tt.o); !errors.Is(err, tt.err) || !strings.Contains(out.String(), tt.want) {
				t.Errorf("%v\n%s", err, out.String())
			}
		})
	}
}

// TestReplay: -log shows the events and the hash of the same run.
func TestReplay(t *testing.T) {
	want := fmt.Sprintf("seed 2: hash %016x", sim.Run(2, sim.Options{Only: "segment"}).Hash)
	out, err := runs(t, func(o *options) {
		o.log, o.campaign.Only = true, "segment"
		if err := o.one("2"); err != nil {
			t.Fatal(err)
		}
	})
	if err != nil || !strings.Contains(out, want) || strings.Count(out, "\n") < 1000 || !strings.Contains(out, "nemesis") {
		t.Errorf("%v, no %q at the end of %d bytes", err, want, len(out))
	}
}

// TestHunt is what make mutants reads.
func TestHunt(t *testing.T) {
	out, err := runs(t, func(o *options) { o.hunt, o.campaign.Only = true, "any" })
	if err != nil || !strings.HasPrefix(out, "no seed of 2 failed") {
		t.Errorf("%v: %s", err, out)
	}
}

func TestUsage(t *testing.T) {
	for name, change := range map[string]func(*options){
		"a mode that does not exist": func(o *options) { o.campaign.Only = "both" },
		"a log of many seeds":        func(o *options) { o.log = true },
	} {
		if _, err := runs(t, change); !errors.Is(err, errUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCommand(t *testing.T) {
	if got := command(17, "segment"); got != "go run ./internal/test/cmd/sim -only segment -seed 17 -log" {
		t.Error(got)
	}
}
