package config_test

import (
	"testing"

	"github.com/leaf-idgen/leaf/internal/config"
)

// TestModeLeftOut: a machine that has no address but the loopback cannot claim a worker
// ID in a shared database. If nobody asked for snowflake mode, segment mode serves alone
// and the node says so; else it does not start.
func TestAsksForSnowflake(t *testing.T) {
	t.Parallel()
	flags := func(pairs ...string) map[string][]string {
		m := map[string][]string{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = []string{pairs[i+1]}
		}
		return m
	}
	for _, tc := range []struct {
		name    string
		flags   map[string][]string
		environ []string
		file    string
		want    bool
	}{
		{name: "nothing"},
		{name: "the other mode", flags: flags("segment.enable", "true")},
		{name: "switched on", flags: flags("snowflake.enable", "true"), want: true},
		{name: "a variable", environ: []string{"LEAF_SNOWFLAKE_LAYOUT=js53"}, want: true},
		{name: "a file", file: "snowflake:\n  namespace: prod\n", want: true},
		{name: "how the machine is reached", flags: flags("snowflake.address", "10.0.0.5", "snowflake.force-address", "true", "snowflake.interface", "eth0")},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			in := config.Input{Flags: tc.flags, Environ: append(tc.environ, "HOME=/home/x")}
			if tc.file != "" {
				in.File = write(t, "leaf.yaml", tc.file)
			}
			l, err := config.Load(in)
			if err != nil {
				t.Fatal(err)
			}
			if got := l.AsksForSnowflake(); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
