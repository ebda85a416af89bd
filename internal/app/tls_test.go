package app_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/config"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
	"github.com/leaf-idgen/leaf/leafpb"
	"github.com/leaf-idgen/leaf/worker"
)

// certificate writes a self-signed one for 127.0.0.1 and its key, and returns the files
// and what a client needs to trust it.
func certificate(t *testing.T) (files config.TLS, trust *tls.Config) {
	t.Helper()
	return certificateFor(t, x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
}

// certificateFor is certificate for the names in c.
func certificateFor(t *testing.T, c x509.Certificate) (files config.TLS, trust *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.NotAfter, c.IsCA, c.BasicConstraintsValid = big.NewInt(1), time.Now().Add(time.Hour), true, true
	der, err := x509.CreateCertificate(rand.Reader, &c, &c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	files.Cert, files.Key = servertest.WriteFiles(t, t.TempDir(), tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key})
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return files, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// TestPeersShowCertificates: where clients must show a certificate, a node can still ask
// its peers for the time.
func TestPeersShowCertificates(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.TLS, _ = certificate(t)
	c.TLS.ClientCA = c.TLS.Cert
	a, _ := start(t, c)
	if _, err := a.AskPeer(t.Context(), worker.Peer{Clock: a.Addr()}); err != nil {
		t.Error(err)
	}
}

// TestTLS: with tls.cert every public server speaks TLS, and other nodes with TLS still
// learn this one's time.
func TestTLS(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	files, trust := certificate(t)
	c.TLS = files
	a, _ := start(t, c)

	tr := &http.Transport{TLSClientConfig: trust, DisableKeepAlives: true}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+a.Addr()+"/api/segment/get/leaf-segment-test", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || string(body) != "1" {
		t.Errorf("HTTPS: %s, %v", body, err)
	}

	conn, err := grpc.NewClient(a.AddrOf("grpc"), grpc.WithTransportCredentials(credentials.NewTLS(trust.Clone())))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if reply, err := leafpb.NewLeafServiceClient(conn).Next(t.Context(), &leafpb.NextRequest{Tag: "leaf-segment-test"}); err != nil || reply.GetRanges()[0].GetLo() != 2 {
		t.Errorf("gRPC: %v, %v", reply, err)
	}

	redis, err := (&tls.Dialer{Config: trust}).DialContext(t.Context(), "tcp", a.AddrOf("resp"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = redis.Close() }()
	answer := make([]byte, 4)
	if _, err := redis.Write([]byte("INCR leaf-segment-test\r\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(redis, answer); err != nil || string(answer) != ":3\r\n" {
		t.Errorf("RESP: %q, %v", answer, err)
	}

	for name, secure := range map[string]*tls.Config{"a node with TLS": trust, "a node without": nil} {
		now, err := app.AskClock(t.Context(), worker.Peer{Clock: a.Addr()}, secure)
		if known := err == nil && time.Since(now).Abs() < time.Minute; known != (secure != nil) {
			t.Errorf("%s learns the time: %v, %v", name, now, err)
		}
	}
	plain, _ := start(t, embedded(shortDir(t)))
	if _, err := app.AskClock(t.Context(), worker.Peer{Clock: plain.Addr()}, trust); err != nil {
		t.Errorf("a node with TLS asks one that has it not yet: %v", err)
	}
}

// TestAdministrationTLS: the administrator's port speaks TLS where other machines reach it,
// with a token and without a certificate of the client, and plain HTTP on loopback.
func TestAdministrationTLS(t *testing.T) {
	t.Parallel()
	files, trust := certificate(t)
	files.ClientCA = files.Cert
	for host, want := range map[string]string{"0.0.0.0": "https", "127.0.0.1": "http"} {
		c := embedded(shortDir(t))
		c.TLS, c.Admin.Addr, c.Admin.Tokens = files, host+":0", []string{"s3cret"}
		a, _ := start(t, c)
		_, port, err := net.SplitHostPort(a.AddrOf("admin"))
		if err != nil {
			t.Fatal(err)
		}
		for _, scheme := range []string{"http", "https"} {
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, scheme+"://127.0.0.1:"+port+"/v1/info", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer s3cret")
			resp, err := (&http.Transport{TLSClientConfig: trust, DisableKeepAlives: true}).RoundTrip(req)
			if err == nil {
				_ = resp.Body.Close()
			}
			if works := err == nil && resp.StatusCode == http.StatusOK; works != (scheme == want) {
				t.Errorf("%s on %s: %v, %v", scheme, host, resp, err)
			}
		}
	}
}
