package respd_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/netip"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/respd"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
)

// TestTLS: the name in a verified certificate is shown to Access, and counts for the
// first request without AUTH.
func TestTLS(t *testing.T) {
	t.Parallel()
	a, stranger := servertest.NewAuthority(t), servertest.NewAuthority(t)
	g := &gate{issuers: leaf.Issuers{Segment: newIssuer(), Snowflake: newIssuer()}}
	s := start(t, quiet(respd.Config{Access: g, TLS: &tls.Config{
		Certificates: []tls.Certificate{a.Server(t)}, ClientCAs: a.Pool, ClientAuth: tls.VerifyClientCertIfGiven, MinVersion: tls.VersionTLS12,
	}}))
	connect := func(certificates ...tls.Certificate) *client {
		conn, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{RootCAs: a.Pool, Certificates: certificates, MinVersion: tls.VersionTLS12})
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}
		return newClient(t, conn)
	}
	for _, tt := range []struct {
		name string
		cert *x509.Certificate
		want string
	}{
		{"none", nil, ""},
		{"common name", &x509.Certificate{Subject: pkix.Name{CommonName: "billing"}}, "billing"},
		{"DNS name", &x509.Certificate{Subject: pkix.Name{CommonName: "billing"}, DNSNames: []string{"billing.example", "b.example"}}, "billing.example"},
	} {
		var shown []tls.Certificate
		if tt.cert != nil {
			shown = append(shown, a.Issue(t, tt.cert))
		}
		c := connect(shown...)
		c.send(request("INCR", tt.name))
		if got := c.reply(); got != ":1\r\n" {
			t.Errorf("%s: got %q", tt.name, got)
		}
		if got := g.last(); got != (leaf.Credentials{Certificate: tt.want, Address: netip.MustParseAddr("127.0.0.1")}) {
			t.Errorf("%s: Access was shown %+v", tt.name, got)
		}
		c.ask("+OK\r\n", "AUTH", "me", "token")
		if got := g.last(); got != (leaf.Credentials{Token: "token", Certificate: tt.want, Name: "me", Address: netip.MustParseAddr("127.0.0.1")}) {
			t.Errorf("%s: Access was shown %+v", tt.name, got)
		}
		c.ask("+OK\r\n", "QUIT")
		c.expectEnd()
	}
	shown := len(g.shown)
	c := connect(stranger.Client(t, "billing"))
	if text, err := readReply(c.r); err == nil {
		t.Errorf("a certificate of a stranger is served %q", text)
	}
	plain := dial(t, s)
	plain.send("PING\r\n")
	if text, err := readReply(plain.r); err == nil && text == "+PONG\r\n" {
		t.Error("a client without TLS is served")
	}
	if len(g.shown) != shown {
		t.Errorf("Access was asked for %+v", g.shown[shown:])
	}
}

// TestTLSHandshakeTimeout: a client that connects and is silent is not waited for.
func TestTLSHandshakeTimeout(t *testing.T) {
	t.Parallel()
	a := servertest.NewAuthority(t)
	cfg := both()
	cfg.TLS = &tls.Config{Certificates: []tls.Certificate{a.Server(t)}, MinVersion: tls.VersionTLS12}
	cfg.RequestTimeout = 100 * time.Millisecond
	c := dial(t, start(t, cfg))
	c.expectEnd()
}
