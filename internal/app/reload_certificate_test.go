package app_test

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/leaf-idgen/leaf/internal/server/servertest"
)

// TestReloadedCertificateRoles: other roles of a certificate count at once, also on a connection
// that is open. Whether certificates have roles at all does not change while the node runs.
func TestReloadedCertificateRoles(t *testing.T) {
	t.Parallel()
	authority := servertest.NewAuthority(t)
	c := embedded(shortDir(t))
	c.TLS.Cert, c.TLS.Key = servertest.WriteFiles(t, t.TempDir(), authority.Server(t))
	shop := authority.Client(t, "shop")
	c.TLS.ClientCA = filepath.Join(t.TempDir(), "ca.pem")
	signer := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Certificate()})
	if err := os.WriteFile(c.TLS.ClientCA, signer, 0o600); err != nil {
		t.Fatal(err)
	}
	c.Auth.Certificates = []string{"shop=issue:leaf*"}
	a, _ := start(t, c)
	conns := &http.Transport{MaxConnsPerHost: 1, TLSClientConfig: &tls.Config{RootCAs: authority.Pool, Certificates: []tls.Certificate{shop}, MinVersion: tls.VersionTLS12}}
	defer conns.CloseIdleConnections()
	redis, err := (&tls.Dialer{Config: conns.TLSClientConfig}).DialContext(t.Context(), "tcp", a.AddrOf("resp"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = redis.Close() }()
	const segment, snowflake = "/api/segment/get/leaf-segment-test", "/api/snowflake/get/x"
	status := func(path string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+a.Addr()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := conns.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return resp.StatusCode
	}
	reply := func() string {
		t.Helper()
		if _, err := io.WriteString(redis, "INCR leaf-segment-test\r\n"); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 200)
		if _, err := redis.Read(answer); err != nil {
			t.Fatal(err)
		}
		return string(answer[:2])
	}
	for _, tt := range []struct {
		name               string
		roles              []string
		changed            bool
		restart            []string
		segment, snowflake int
		redis              string
	}{
		{"at the start", []string{"shop=issue:leaf*"}, false, nil, 200, 403, ":1"},
		{"another role", []string{"shop=snowflake"}, true, nil, 403, 200, "-N"},
		{"another name", []string{"other=issue"}, true, nil, 401, 401, "-N"},
		{"the name again", []string{"other=issue", "shop=issue"}, true, nil, 200, 200, ":2"},
		{"roles of none", nil, false, []string{"auth.certificate"}, 200, 200, ":3"},
	} {
		next := c
		next.Auth.Certificates = tt.roles
		r, err := a.Reload(next)
		if err != nil || tt.changed != (len(r.Changed) == 1) || !slices.Equal(r.Restart, tt.restart) {
			t.Errorf("%s: changed %+v, restart %q, %v", tt.name, r.Changed, r.Restart, err)
		}
		got, other := status(segment), status(snowflake)
		if said := reply(); got != tt.segment || other != tt.snowflake || said[:1] != tt.redis[:1] {
			t.Errorf("%s: segment mode %d, snowflake mode %d, Redis protocol %q", tt.name, got, other, said)
		}
	}
}

// TestReloadFirstCertificateRoles: roles that no certificate had before need a restart.
func TestReloadFirstCertificateRoles(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.TLS, _ = certificate(t)
	c.TLS.ClientCA = c.TLS.Cert
	a, _ := start(t, c)
	next := c
	next.Auth.Certificates = []string{"shop=issue"}
	if r, err := a.Reload(next); err != nil || !slices.Equal(r.Restart, []string{"auth.certificate"}) {
		t.Errorf("restart %q, %v", r.Restart, err)
	}
	next.Auth.Certificates = []string{"shop=rule"}
	if _, err := a.Reload(next); err == nil {
		t.Error("a role that there is not")
	}
}
