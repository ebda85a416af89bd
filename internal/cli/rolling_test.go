package cli_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/internal/test/port"
)

// TestRollingUpgrade: three nodes with TLS and named tokens serve a Go client. Their certificate is
// exchanged, then each node is drained and started again, as OPERATIONS.md says. No call fails, and
// no ID repeats.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	files, trust := t.TempDir(), x509.NewCertPool()
	store := "sqlite:" + filepath.Join(t.TempDir(), "shared.db")
	leafOK(t, "schema", "apply", "--store", store, "--data-dir", dataDir(t))
	leafOK(t, "tag", "create", "leaf-segment-test", "--store", store, "--data-dir", dataDir(t))
	token := strings.TrimSpace(outputOf(t, "token", "create", "shop", "--role", "issue", "--tags", "leaf-*", "--store", store, "--data-dir", dataDir(t)))
	newCertificate(t, "first", trust)(files)
	second := newCertificate(t, "second", trust)

	args := []string{
		"--store", store, "--no-snowflake-enable", "--auth-named", "store", "--reload-interval", "20ms",
		"--tls-cert", filepath.Join(files, "cert.pem"), "--tls-key", filepath.Join(files, "key.pem"), "--grpc-addr",
	}
	var nodes [3]*process
	addrs := []string{port.Unused(t), port.Unused(t), port.Unused(t)}
	for i := range nodes {
		nodes[i] = serve(t, dataDir(t), append(args, addrs[i])...)
	}
	c, err := client.New(client.Addresses(addrs...), client.WithTLS(&tls.Config{RootCAs: trust}), client.WithToken(token),
		client.WithTimeout(20*time.Second), client.WithLogger(slog.New(slog.DiscardHandler))) // a call that fails has no time-out as its excuse
	if err != nil {
		t.Fatal(err)
	}
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	callers := callUntil(t, c)

	second(files)
	for i, p := range nodes {
		p.await(t, `changed=tls.cert`)
		if name := shownBy(t, addrs[i], trust); name != "second" {
			t.Errorf("node %d shows the certificate %q", i, name)
		}
	}
	for i, p := range nodes {
		leafOK(t, "drain", "--delay", "200ms", "--data-dir", p.dir)
		if err := <-p.done; err != nil {
			t.Fatalf("leaf drain ended node %d with %v", i, err)
		}
		nodes[i] = serve(t, p.dir, append(args, addrs[i])...)
	}
	callers.judge(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := c.Close(ctx); err != nil {
		t.Error(err)
	}
}

// newCertificate makes a certificate that trust trusts. put puts it and its key into a folder, in place
// of what is there.
func newCertificate(t *testing.T, name string, trust *x509.CertPool) (put func(folder string)) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	trust.AddCert(parsed)
	return func(folder string) {
		for file, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: der}, "key.pem": {Type: "PRIVATE KEY", Bytes: private}} {
			path := filepath.Join(folder, file)
			if err := os.WriteFile(path+".new", pem.EncodeToMemory(block), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(path+".new", path); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// shownBy returns the name in the certificate that a server shows.
func shownBy(t *testing.T, addr string, trust *x509.CertPool) string {
	t.Helper()
	conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: trust, NextProtos: []string{"h2"}}}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName
}

// ongoing are callers that take IDs.
type ongoing struct {
	stop   func()
	all    sync.WaitGroup
	mu     sync.Mutex
	ids    []int64
	failed []error
}

// callUntil starts callers, each of which takes one ID after the other.
func callUntil(t *testing.T, c *client.Client) *ongoing {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	o := &ongoing{stop: stop}
	for range 8 {
		o.all.Go(func() {
			for ctx.Err() == nil {
				id, err := c.Next(context.WithoutCancel(ctx), "leaf-segment-test")
				o.mu.Lock()
				if err != nil {
					o.failed = append(o.failed, err)
				} else {
					o.ids = append(o.ids, id)
				}
				o.mu.Unlock()
				time.Sleep(time.Millisecond)
			}
		})
	}
	return o
}

// judge ends the callers, and fails the test if a call failed or an ID repeats.
func (o *ongoing) judge(t *testing.T) {
	t.Helper()
	o.stop()
	o.all.Wait()
	for _, err := range o.failed {
		t.Errorf("a call failed: %v", err)
	}
	distinct{}.add(t, o.ids)
	if len(o.ids) < 100 {
		t.Errorf("only %d calls", len(o.ids))
	}
}
