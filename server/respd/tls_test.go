package respd_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/server/respd"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	a := authority{pool: x509.NewCertPool()}
	c := a.sign(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	a.cert, a.key = c.Leaf, c.PrivateKey.(*ecdsa.PrivateKey)
	a.pool.AddCert(a.cert)
	return a
}

// sign returns a certificate, signed by a, or by itself if a is not complete.
func (a authority) sign(t *testing.T, c *x509.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber = big.NewInt(time.Now().UnixNano())
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// TestTLS: the name in a verified certificate is shown to Access, and counts for the
// first request without AUTH.
func TestTLS(t *testing.T) {
	t.Parallel()
	a, stranger := newAuthority(t), newAuthority(t)
	host := a.sign(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	g := &gate{issuers: leaf.Issuers{Segment: newIssuer(), Snowflake: newIssuer()}}
	s := start(t, quiet(respd.Config{Access: g, TLS: &tls.Config{
		Certificates: []tls.Certificate{host}, ClientCAs: a.pool, ClientAuth: tls.VerifyClientCertIfGiven, MinVersion: tls.VersionTLS12,
	}}))
	connect := func(certificates ...tls.Certificate) *client {
		conn, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{RootCAs: a.pool, Certificates: certificates, MinVersion: tls.VersionTLS12})
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
			shown = append(shown, a.sign(t, tt.cert))
		}
		c := connect(shown...)
		c.send(request("INCR", tt.name))
		if got := c.reply(); got != ":1\r\n" {
			t.Errorf("%s: got %q", tt.name, got)
		}
		if got := g.last(); got != (leaf.Credentials{Certificate: tt.want}) {
			t.Errorf("%s: Access was shown %+v", tt.name, got)
		}
		c.ask("+OK\r\n", "AUTH", "me", "token")
		if got := g.last(); got != (leaf.Credentials{Token: "token", Certificate: tt.want, Name: "me"}) {
			t.Errorf("%s: Access was shown %+v", tt.name, got)
		}
		c.ask("+OK\r\n", "QUIT")
		c.expectEnd()
	}
	shown := len(g.shown)
	c := connect(stranger.sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "billing"}}))
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
	a := newAuthority(t)
	cfg := both()
	cfg.TLS = &tls.Config{Certificates: []tls.Certificate{a.sign(t, &x509.Certificate{})}, MinVersion: tls.VersionTLS12}
	cfg.RequestTimeout = 100 * time.Millisecond
	c := dial(t, start(t, cfg))
	c.expectEnd()
}
