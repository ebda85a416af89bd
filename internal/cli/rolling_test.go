package cli_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
	"github.com/leaf-idgen/leaf/internal/test/port"
)

// TestRollingUpgrade: three nodes with TLS and named tokens serve a Go client. Their certificate is
// exchanged, then each node is drained and started again, as OPERATIONS.md says. No call fails, and
// no ID repeats.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	files, authority := t.TempDir(), servertest.NewAuthority(t)
	store := "sqlite:" + filepath.Join(t.TempDir(), "shared.db")
	leafOK(t, "schema", "apply", "--store", store, "--data-dir", dataDir(t))
	leafOK(t, "tag", "create", "leaf-segment-test", "--store", store, "--data-dir", dataDir(t))
	token := strings.TrimSpace(outputOf(t, "token", "create", "shop", "--role", "issue", "--tags", "leaf-*", "--store", store, "--data-dir", dataDir(t)))
	cert, key := servertest.WriteFiles(t, files, certificate(t, authority, "first"))

	args := []string{
		"--store", store, "--no-snowflake-enable", "--auth-named", "store", "--reload-interval", "20ms",
		"--tls-cert", cert, "--tls-key", key, "--grpc-addr",
	}
	var nodes [3]*process
	addrs := []string{port.Unused(t), port.Unused(t), port.Unused(t)}
	for i := range nodes {
		nodes[i] = serve(t, dataDir(t), append(args, addrs[i])...)
	}
	c, err := client.New(client.Addresses(addrs...), client.WithTLS(&tls.Config{RootCAs: authority.Pool}), client.WithToken(token),
		client.WithTimeout(20*time.Second), client.WithLogger(slog.New(slog.DiscardHandler))) // a call that fails has no time-out as its excuse
	if err != nil {
		t.Fatal(err)
	}
	if err := c.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	callers := callUntil(t, c)

	servertest.WriteFiles(t, files, certificate(t, authority, "second"))
	for i, p := range nodes {
		p.await(t, `changed=tls.cert`)
		if name := shownBy(t, addrs[i], authority.Pool); name != "second" {
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

// certificate is one for 127.0.0.1 with a name.
func certificate(t *testing.T, a *servertest.Authority, name string) tls.Certificate {
	t.Helper()
	return a.Issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
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
