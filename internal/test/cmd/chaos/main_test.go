package main

import (
	"bytes"
	"testing"
	"time"
)

// TestFlags: how the time is divided, and what can be typed to repeat a run.
func TestFlags(t *testing.T) {
	for _, tt := range []struct {
		name     string
		args     []string
		topology string
		lasts    time.Duration
		command  string
	}{
		{"evenly", []string{"-minutes", "4", "-seed", "9", "-topology", "mariadb,outage"}, "outage", 2 * time.Minute, "make chaos MINUTES=4 SEED=9 TOPOLOGY=mariadb,outage"},
		{
			"the outage apart",
			[]string{"-minutes", "4", "-outage", "11", "-seed", "9", "-topology", "mariadb,outage"},
			"outage", 11 * time.Minute,
			"make chaos MINUTES=4 SEED=9 OUTAGE=11 TOPOLOGY=mariadb,outage",
		},
		{
			"and the others have the rest",
			[]string{"-minutes", "4", "-outage", "11", "-seed", "9", "-topology", "mariadb,outage", "-faults", "node,disk"},
			"mariadb", 4 * time.Minute,
			`make chaos MINUTES=4 SEED=9 OUTAGE=11 TOPOLOGY=mariadb,outage FAULTS="node,disk"`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o, err := read(tt.args, &bytes.Buffer{})
			if err != nil {
				t.Fatal(err)
			}
			if got := o.duration(tt.topology); got != tt.lasts {
				t.Errorf("%s runs for %v, want %v", tt.topology, got, tt.lasts)
			}
			if got := o.command(); got != tt.command {
				t.Errorf("command %q, want %q", got, tt.command)
			}
		})
	}
	t.Run("without any", func(t *testing.T) {
		o, err := read(nil, &bytes.Buffer{})
		if err != nil || o.seed == 0 || len(o.topologies) < 7 {
			t.Errorf("%+v, %v", o, err)
		}
	})
	for name, args := range map[string][]string{"unknown flag": {"-second"}, "no flag": {"mariadb"}} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			if code := run(t.Context(), args, &said, &said); code != 2 || said.Len() == 0 {
				t.Errorf("exit code %d, said %q", code, said.String())
			}
		})
	}
}
