package app_test

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/manage"
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
		c.HTTP.Addr, c.GRPC.Addr, c.RESP.Addr, c.Auth.Open = tt.addr, "off", "off", true
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

// TestRefusalNamesNoSecrets: while the database keeps a mode from serving, the error for a client
// names no host, user or database. The error for an administrator names them.
func TestRefusalNamesNoSecrets(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	down := port.Unused(t)
	c.GRPC.Addr, c.RESP.Addr = "off", "off"
	c.Snowflake.Address, c.Snowflake.Force = "127.0.0.1", true
	c.Stores = []string{"mysql://someone@" + down + "/orders"}
	a, _ := start(t, c)
	for _, path := range []string{"/api/segment/get/x", "/api/snowflake/get/x", "/db"} {
		status, body := get(t, a, path)
		for _, secret := range []string{down, "someone", "orders"} {
			if status != 503 || strings.Contains(body, secret) {
				t.Errorf("%s: %d, want 503 without %q: %s", path, status, secret, body)
			}
		}
	}
	if _, err := manage.Ask(t.Context(), a.Backend(), manage.NextSnowflake{N: 1}); err == nil || !strings.Contains(err.Error(), down) {
		t.Errorf("an administrator is told %v, want it to name %s", err, down)
	}
}

// TestPublicReadinessOfAStop: where /readyz shows codes only, the code of a mode that may
// not serve any more is not "serving".
func TestPublicReadinessOfAStop(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.HTTP.Addr, c.DrainDelay, c.Auth.Open = ":0", time.Second, true
	a, stop := start(t, c)
	awaitStatus(t, a, "/readyz?mode=snowflake", 200)
	stopped := make(chan struct{})
	go func() { defer close(stopped); stop() }()
	awaitStatus(t, a, "/readyz", 503)
	if _, body := get(t, a, "/readyz"); strings.Contains(body, "serving") || !strings.Contains(body, `"snowflake":{"ready":false,"reasons":["not_ready"]}`) {
		t.Error(body)
	}
	<-stopped
}
