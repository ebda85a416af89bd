package app_test

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/test/port"
)

func TestModeLeftOut(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.Stores = []string{"mysql://u@" + port.Unused(t) + "/leaf"}
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
	if _, err := manage.Ask(t.Context(), a.Backend(), manage.ListWorkers{}); !errors.Is(err, leaf.ErrDisabled) || !strings.Contains(err.Error(), why) {
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
