package app_test

import (
	"crypto/tls"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

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
