package accept_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/accept"
)

func TestClientName(t *testing.T) {
	t.Parallel()
	cert := func(common string, names ...string) *x509.Certificate {
		return &x509.Certificate{Subject: pkix.Name{CommonName: common}, DNSNames: names}
	}
	verified := func(c *x509.Certificate) tls.ConnectionState {
		return tls.ConnectionState{PeerCertificates: []*x509.Certificate{c}, VerifiedChains: [][]*x509.Certificate{{c, cert("the authority")}}}
	}
	for _, tt := range []struct {
		name  string
		state tls.ConnectionState
		want  string
	}{
		{"none", tls.ConnectionState{}, ""},
		{"not verified", tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert("mallory", "mallory")}}, ""},
		{"an empty chain", tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{}}}, ""},
		{"DNS names", verified(cert("common", "first", "second")), "first"},
		{"common name", verified(cert("common")), "common"},
		{"an empty DNS name", verified(cert("common", "")), "common"},
		{"no name", verified(cert("")), "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := accept.ClientName(tt.state); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestEnded(t *testing.T) {
	t.Parallel()
	other := errors.New("another error")
	for _, tt := range []struct {
		name     string
		err      error
		notReady bool
	}{
		{"nil", nil, false},
		{"deadline", context.DeadlineExceeded, true},
		{"cancelled, wrapped", fmt.Errorf("load tag a: %w", context.Canceled), true},
		{"a deadline with a class", fmt.Errorf("%w: %w", leaf.ErrExhausted, context.DeadlineExceeded), false},
		{"another error", other, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := accept.Ended(tt.err)
			if !errors.Is(got, tt.err) {
				t.Errorf("%v is lost in %v", tt.err, got)
			}
			if !tt.notReady && !identical(got, tt.err) {
				t.Errorf("%v became %v", tt.err, got)
			}
			if class := leaf.ClassOf(got); tt.notReady && class.Code != "not_ready" {
				t.Errorf("%v has the class %v", got, class.Code)
			}
		})
	}
}

// identical reports whether a is b itself, and not only wraps it.
func identical(a, b error) bool {
	return a == b //nolint:errorlint // wrapping is what this is to notice
}
