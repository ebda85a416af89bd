package app_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/app"
)

// TestModeLeftOut: a machine that has no address but the loopback cannot claim a worker
// ID in a shared database. If nobody asked for snowflake mode, segment mode serves alone
// and the node says so; else it does not start.
func TestModeLeftOut(t *testing.T) {
	t.Parallel()
	c := config(shortDir(t))
	c.Stores = []string{"mysql://u@" + unanswered(t) + "/leaf"}
	opts := app.Options{}.On(app.Interface{Name: "lo", Up: true, Loopback: true, Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	a, err := app.New(c, opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Error(err)
	}
	const why = "no address that other machines can reach was found among lo (127.0.0.1)"
	if _, body := get(t, a, "/readyz"); !strings.Contains(body, "snowflake mode is off: snowflake.address") || !strings.Contains(body, why) {
		t.Errorf("/readyz hides that a mode is off: %s", body)
	}
	if status, _ := get(t, a, "/api/snowflake/get/x"); status != 501 {
		t.Errorf("got %d, want 501", status)
	}
	if _, err := a.Backend().Workers(t.Context()); !errors.Is(err, leaf.ErrDisabled) || !strings.Contains(err.Error(), why) {
		t.Errorf("a command: got %v", err)
	}
	if err := a.Stop(context.Background()); err != nil {
		t.Error(err)
	}

	opts.Snowflake = true
	if _, err := app.New(c, opts); !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), why) {
		t.Errorf("the mode was asked for: got %v", err)
	}
}

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
			in := app.Input{Flags: tc.flags, Environ: append(tc.environ, "HOME=/home/x")}
			if tc.file != "" {
				in.File = write(t, "leaf.yaml", tc.file)
			}
			l, err := app.Load(in)
			if err != nil {
				t.Fatal(err)
			}
			if got := l.AsksForSnowflake(); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
