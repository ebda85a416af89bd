package app_test

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/test/port"
)

// TestPublicReadiness: where strangers can reach /readyz, it names no host, user or
// database. On loopback it says all.
func TestPublicReadiness(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		addr string
		open bool
	}{{"127.0.0.1:0", true}, {":0", false}} {
		c := embedded(shortDir(t))
		down := port.Unused(t)
		c.HTTP.Addr, c.GRPC.Addr, c.RESP.Addr = tt.addr, "off", "off"
		c.Stores = []string{"mysql://someone@" + down + "/orders"}
		a, err := app.New(c, app.Options{}.On(app.Interface{Name: "lo", Up: true, Loopback: true, Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}}))
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Start(t.Context()); err != nil {
			t.Error(err)
		}
		host, _, _ := net.SplitHostPort(down)
		_, body := get(t, a, "/readyz")
		for _, secret := range []string{host, "someone", "orders", "reach"} {
			if !tt.open && strings.Contains(body, secret) {
				t.Errorf("%s: %q is in %s", tt.addr, secret, body)
			}
		}
		if want := `"not_ready"`; strings.Contains(body, want) == tt.open {
			t.Errorf("%s: %s", tt.addr, body)
		}
		if err := a.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}
}
