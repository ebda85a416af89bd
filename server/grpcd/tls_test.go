package grpcd_test

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

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/leafpb"
)

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{pool: x509.NewCertPool()}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	pair := a.sign(t, template)
	a.cert, a.key = pair.Leaf, pair.PrivateKey.(*ecdsa.PrivateKey)
	a.pool.AddCert(a.cert)
	return a
}

func (a *authority) sign(t *testing.T, template *x509.Certificate) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: cert}
}

// issue returns a certificate for a name and DNS names.
func (a *authority) issue(t *testing.T, name string, dns ...string) tls.Certificate {
	return a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: dns,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	})
}

func TestTLS(t *testing.T) {
	ours, theirs := newAuthority(t), newAuthority(t)
	cfg := serves(newIssuer())
	asked := access{cfg.Access, make(chan leaf.Credentials, 10)}
	cfg.Access = asked
	cfg.TLS = &tls.Config{
		Certificates: []tls.Certificate{ours.issue(t, "server")},
		ClientCAs:    ours.pool,
		ClientAuth:   tls.VerifyClientCertIfGiven,
	}
	s := start(t, cfg)
	for _, tt := range []struct {
		name  string
		certs []tls.Certificate
		want  string
	}{
		{"no certificate", nil, ""},
		{"common name", []tls.Certificate{ours.issue(t, "shop")}, "shop"},
		{"the first DNS name", []tls.Certificate{ours.issue(t, "shop", "shop.example", "b.example")}, "shop.example"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			config := &tls.Config{RootCAs: ours.pool, Certificates: tt.certs}
			c := leafpb.NewLeafServiceClient(dial(t, s, grpc.WithTransportCredentials(credentials.NewTLS(config))))
			_, err := c.Next(within(t, 20*time.Second), &leafpb.NextRequest{Tag: "a"})
			checkStatus(t, err, "unauthenticated") // by access, which asks for a token
			if got := <-asked.opened; got != (leaf.Credentials{Certificate: tt.want}) {
				t.Errorf("opened with %+v, want the certificate %q", got, tt.want)
			}
		})
	}
	stranger := &tls.Config{RootCAs: ours.pool, Certificates: []tls.Certificate{theirs.issue(t, "shop")}}
	for name, opt := range map[string]credentials.TransportCredentials{"a stranger's certificate": credentials.NewTLS(stranger), "plain": nil} {
		var opts []grpc.DialOption
		if opt != nil {
			opts = append(opts, grpc.WithTransportCredentials(opt))
		}
		c := leafpb.NewLeafServiceClient(dial(t, s, opts...))
		if _, err := c.Next(within(t, 20*time.Second), &leafpb.NextRequest{Tag: "a"}); status.Code(err) != codes.Unavailable {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if len(asked.opened) > 0 {
		t.Errorf("a client without a handshake was asked about: %+v", <-asked.opened)
	}
}
