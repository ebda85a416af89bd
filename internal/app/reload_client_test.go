package app_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
)

// TestReloadClientCA exchanges the certificates that must have signed those of clients: a
// client of the authority that is gone is refused on every server, also where it resumes
// an earlier session.
func TestReloadClientCA(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	files, trust := certificate(t)
	first, _ := certificate(t)
	second, _ := certificate(t)
	c.TLS = files
	c.TLS.ClientCA = first.Cert
	a, _ := start(t, c)
	servers := []struct {
		name, address, protocol, says string
	}{
		{"HTTP", a.Addr(), "http/1.1", "GET /healthz HTTP/1.1\r\nHost: leaf\r\n\r\n"},
		{"gRPC", a.AddrOf("grpc"), "h2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"},
		{"RESP", a.AddrOf("resp"), "", "PING\r\n"},
	}
	sessions := tls.NewLRUClientSessionCache(0)
	admitted := func(by config.TLS) (names string) {
		t.Helper()
		pair, err := tls.LoadX509KeyPair(by.Cert, by.Key)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range servers {
			shown := trust.Clone()
			shown.Certificates, shown.ClientSessionCache = []tls.Certificate{pair}, sessions
			shown.ServerName = "127.0.0.1"
			if s.protocol != "" {
				shown.NextProtos = []string{s.protocol}
			}
			if by == second {
				shown.ClientSessionCache = nil // the sessions are those of the other client
			}
			conn, err := (&tls.Dialer{Config: shown}).DialContext(t.Context(), "tcp", s.address)
			if err != nil {
				continue
			}
			_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
			_, _ = io.WriteString(conn, s.says)
			if _, err := conn.Read(make([]byte, 1)); err == nil {
				names += s.name + " "
				if got := conn.(*tls.Conn).ConnectionState().NegotiatedProtocol; got != s.protocol {
					t.Errorf("%s speaks %q", s.name, got)
				}
			}
			_ = conn.Close()
		}
		return strings.TrimSpace(names)
	}
	const all = "HTTP gRPC RESP"
	if was, others := admitted(first), admitted(second); was != all || others != "" {
		t.Fatalf("before: %q, the others %q", was, others)
	}

	next := c
	next.TLS.ClientCA = files.Key
	if _, err := a.Reload(next); err == nil || !strings.Contains(err.Error(), "must hold a certificate in PEM form") {
		t.Errorf("no certificate in the file: %v", err)
	}
	next.TLS.ClientCA = ""
	if r, err := a.Reload(next); err != nil || !slices.Equal(r.Restart, []string{"tls.client-ca"}) {
		t.Errorf("no client-ca: restart %q, %v", r.Restart, err)
	}
	if was, others := admitted(first), admitted(second); was != all || others != "" {
		t.Errorf("after reloads that change nothing: %q, the others %q", was, others)
	}

	next.TLS.ClientCA = second.Cert
	if r, err := a.Reload(next); err != nil || len(r.Restart) > 0 {
		t.Fatalf("restart %q, %v", r.Restart, err)
	}
	if was, others := admitted(first), admitted(second); was != "" || others != all {
		t.Errorf("after: %q, the others %q", was, others)
	}
}

// TestReloadWithoutClientCA: a node that asks clients for no certificate does not begin to
// before it is restarted, and says so.
func TestReloadWithoutClientCA(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.TLS, _ = certificate(t)
	a, _ := start(t, c)
	c.TLS.ClientCA = c.TLS.Cert
	if r, err := a.Reload(c); err != nil || !slices.Equal(r.Restart, []string{"tls.client-ca"}) {
		t.Errorf("restart %q, %v", r.Restart, err)
	}
}

// TestReloadOrderCA exchanges the authority of the certificates of nodes: a call for a tag in strict order is taken to an owner that
// has a certificate of the new one.
func TestReloadOrderCA(t *testing.T) {
	t.Parallel()
	first, trust := certificate(t)
	second, _ := certificate(t)
	dir := shortDir(t)
	c := ordered(t, dir)
	c.TLS, c.Order.CA = first, first.Cert
	owner, _ := start(t, c)
	createStrict(t, owner, "order")
	other := ordered(t, dir)
	other.TLS, other.Order.CA, other.Order.MaxWait = first, filepath.Join(t.TempDir(), "ca.pem"), 20*time.Second
	other.Node.Weight = 0 // it owns nothing
	exchange := func(by string) {
		t.Helper()
		content, err := os.ReadFile(by)
		if err == nil {
			err = os.WriteFile(other.Order.CA, content, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	exchange(first.Cert)
	a, _ := start(t, other)
	ask := func(a *app.App) {
		t.Helper()
		conns := &http.Transport{TLSClientConfig: trust}
		defer conns.CloseIdleConnections()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+a.Addr()+"/api/segment/get/order", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := conns.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%d %s, %v", resp.StatusCode, body, err)
		}
	}
	ask(owner)

	exchange(first.Key)
	if _, err := a.Reload(other); err == nil || !strings.Contains(err.Error(), "order.ca") {
		t.Errorf("no certificate in the file: %v", err)
	}
	exchange(second.Cert)
	r, err := a.Reload(other)
	if err != nil || len(r.Restart) > 0 || !slices.ContainsFunc(r.Changed, func(d config.Difference) bool { return d.Key == "order.ca" }) {
		t.Fatalf("changed %+v, restart %q, %v", r.Changed, r.Restart, err)
	}
	c.TLS = second
	if _, err := owner.Reload(c); err != nil {
		t.Fatal(err)
	}
	ask(a)
	if r, err := a.Reload(other); err != nil || len(r.Changed) > 0 {
		t.Errorf("again: changed %+v, %v", r.Changed, err)
	}
}
