package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/internal/server/grpcd"
)

// TestTLS: a client trusts whom its configuration trusts, and nobody else.
func TestTLS(t *testing.T) {
	lender := httptest.NewTLSServer(nil) // its certificate is for 127.0.0.1 and example.com
	t.Cleanup(lender.Close)
	issuer := &counter{}
	address, _ := startNode(t, "127.0.0.1:0", grpcd.Config{
		Access: leaf.Anyone(issuer, nil),
		TLS:    &tls.Config{Certificates: lender.TLS.Certificates, NextProtos: []string{"h2"}},
		Logger: slog.New(slog.DiscardHandler),
	})
	trusted := x509.NewCertPool()
	trusted.AddCert(lender.Certificate())
	for _, c := range []struct {
		name string
		opts []client.Option
		ok   bool
	}{
		{"trusted", []client.Option{client.WithTLS(&tls.Config{RootCAs: trusted})}, true},
		{"by name", []client.Option{client.WithTLS(&tls.Config{RootCAs: trusted, ServerName: "example.com"})}, true},
		{"another name", []client.Option{client.WithTLS(&tls.Config{RootCAs: trusted, ServerName: "leaf.test"})}, false},
		// Not the roots of the system: to read them takes long enough on a busy machine to outlive the client.
		{"unknown authority", []client.Option{client.WithTLS(&tls.Config{RootCAs: x509.NewCertPool()})}, false},
		{"plain", nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			leafClient := newClient(t, client.Addresses(address), c.opts...)
			patience := 500 * time.Millisecond
			if c.ok {
				patience = 10 * time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			_, err := leafClient.Next(ctx, "order")
			if (err == nil) != c.ok || !c.ok && !errors.Is(err, leaf.ErrNotReady) {
				t.Errorf("%v", err)
			}
		})
	}
}
