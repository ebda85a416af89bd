package chaos_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/chaos"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// TestShortRuns: about a minute of what make chaos does for longer. All kinds of
// faults on one database; files that vanish, and a client that wants all connections of a
// node; the database gone, with not one failed request for a tag
// with stock; and failovers that lose commits under a cluster fence.
// CHAOS_SEED repeats a seed.
func TestShortRuns(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: needs real servers; run make test")
	}
	seed := rand.Uint64N(1_000_000) + 1
	if text := os.Getenv("CHAOS_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	binary, err := chaos.Build(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	strict := 1 // four runs side by side, beside other tests
	if os.Getenv("LEAF_LONG") != "" {
		strict = 0
	}
	for _, run := range []struct {
		topology string
		only     []string
		duration time.Duration
	}{
		{"mariadb", nil, 25 * time.Second},
		{"sqlite", []string{"file deleted: fence-end", "file deleted: shared.db-wal", "idle connections"}, 55 * time.Second},
		{"outage", nil, 20 * time.Second},
		{"failover", []string{"node killed", "failover that loses commits", "split brain"}, 40 * time.Second},
	} {
		t.Run(run.topology, func(t *testing.T) {
			t.Parallel() // they mostly wait
			report, err := chaos.Run(t.Context(), chaos.Config{
				Topology: run.topology, Seed: seed, Duration: run.duration, Only: run.only, Binary: binary, Strict: strict,
				Recovery: 2 * time.Minute, // a busy machine
				Progress: func(text string) { t.Log(text) },
			})
			if errors.Is(err, server.ErrMissing) && os.Getenv("CI") != "true" {
				t.Skipf("NOT TESTED: %v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range report.Checks {
				if !c.Kept {
					t.Errorf("seed %d: BROKEN: %s", seed, c.Text)
					continue
				}
				t.Logf("kept: %s", c.Text)
			}
			if len(report.Events) == 0 {
				t.Error("no fault came")
			}
			t.Logf("seed %d: %d requests, %d IDs, %d faults; logs, if it failed: %s", seed, report.Requests, report.Verdict.IDs, len(report.Events), report.Kept)
		})
	}
}

// TestRefusals: what cannot be run says so.
func TestRefusals(t *testing.T) {
	for name, c := range map[string]chaos.Config{
		"unknown topology": {Topology: "mongodb", Duration: time.Minute},
		"too short":        {Topology: "mariadb", Duration: 14 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if r, err := chaos.Run(t.Context(), c); err == nil || r != nil {
				t.Errorf("it ran: %v, %v", r, err)
			}
		})
	}
}
