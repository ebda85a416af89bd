package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/internal/server/grpcd"
)

// listed is a directory.
type listed []discovery.Node

func (l listed) List(context.Context) ([]discovery.Node, error) { return l, nil }

// TestTrust: a directory cannot name a host that the program does not expect, and a token
// does not cross the network as plain text, unless the program allows it.
func TestTrust(t *testing.T) {
	directory := listed{node("a", "", 100)}
	fixed := client.Addresses("a:1")
	secure := client.WithTLS(&tls.Config{})
	for _, c := range []struct {
		name  string
		nodes client.Resolver
		opts  []client.Option
		field string // of the error; empty: none
	}{
		{"plain, no token", directory, nil, ""},
		{"plain with a token", fixed, []client.Option{client.WithToken("t")}, "WithToken"},
		{"plain with a function", fixed, []client.Option{client.WithTokenFunc(func(context.Context) (string, error) { return "t", nil })}, "WithToken"},
		{"plain with no token", fixed, []client.Option{client.WithToken("")}, ""},
		{"allowed", fixed, []client.Option{client.WithToken("t"), client.WithPlainToken()}, ""},
		{"hosts do not encrypt", directory, []client.Option{client.WithToken("t"), client.WithHosts("a")}, "WithToken"},
		{"TLS, fixed", fixed, []client.Option{secure, client.WithToken("t")}, ""},
		{"TLS, DNS", client.DNS("leaf:9090"), []client.Option{secure, client.WithToken("t")}, ""},
		{"TLS, any host", directory, []client.Option{secure}, "WithTLS"},
		{"TLS, one name", directory, []client.Option{client.WithTLS(&tls.Config{ServerName: "leaf"}), client.WithToken("t")}, ""},
		{"TLS, hosts", directory, []client.Option{secure, client.WithHosts("*.leaf.example.org", "10.0.0.0/8", "::1")}, ""},
		{"TLS, any host is allowed", directory, []client.Option{secure, client.WithAnyHost()}, ""},
		{"a pattern that is none", directory, []client.Option{client.WithHosts("a.*.org")}, "WithHosts"},
		{"an empty pattern", directory, []client.Option{client.WithHosts("")}, "WithHosts"},
		{"a CIDR that is none", directory, []client.Option{client.WithHosts("10.0.0.0/33")}, "WithHosts"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				cl := newCluster(node("a", "", 100))
				leafClient, err := client.New(c.nodes, append(c.opts, client.WithLinks(cl.dial), client.WithLogger(slog.New(slog.DiscardHandler)))...)
				if (err != nil) != (c.field != "") || err != nil && (!errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), c.field)) {
					t.Errorf("New = %v", err)
				}
				if err == nil {
					if err := leafClient.Close(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// TestHosts: nodes at other hosts than the expected ones are not asked.
func TestHosts(t *testing.T) {
	for _, c := range []struct {
		pattern, host string
		used          bool
	}{
		{"leaf-1.example.org", "leaf-1.example.org", true},
		{"leaf-1.example.org", "LEAF-1.example.org", true},
		{"leaf-1.example.org", "leaf-2.example.org", false},
		{"*.example.org", "leaf-1.example.org", true},
		{"*.example.org", "example.org", false},
		{"*.example.org", "leaf.example.org.evil.test", false},
		{"*.example.org", "evilexample.org", false},
		{"10.0.0.0/8", "10.1.2.3", true},
		{"10.0.0.0/8", "11.1.2.3", false},
		{"10.0.0.0/8", "10.evil.test", false},
		{"10.1.2.3", "10.1.2.3", true},
		{"10.1.2.3", "10.1.2.4", false},
		{"::1", "::1", true},
		{"fd00::/8", "fd12::1", true},
	} {
		t.Run(c.pattern+" "+c.host, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				other := node("other", "", 100)
				other.GRPC = c.host + ":1"
				if strings.Contains(c.host, "::") {
					other.GRPC = "[" + c.host + "]:1"
				}
				cl := newCluster(other)
				leafClient := cl.client(t, client.WithHosts(c.pattern))
				synctest.Wait()
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				if _, err := leafClient.Next(ctx, "order"); (err == nil) != c.used {
					t.Errorf("Next = %v", err)
				}
			})
		})
	}
}

// TestTokenFunc: the function is asked for the token, and its error ejects no node.
func TestTokenFunc(t *testing.T) {
	lender := httptest.NewTLSServer(nil)
	t.Cleanup(lender.Close)
	trusted := x509.NewCertPool()
	trusted.AddCert(lender.Certificate())
	issuer := &counter{}
	address, _ := startNode(t, "127.0.0.1:0", grpcd.Config{
		Access: leaf.Anyone(issuer, nil),
		TLS:    &tls.Config{Certificates: lender.TLS.Certificates, NextProtos: []string{"h2"}},
		Logger: slog.New(slog.DiscardHandler),
	})
	secure := client.WithTLS(&tls.Config{RootCAs: trusted})
	var asked atomic.Int64
	c := newClient(t, client.Addresses(address), secure, client.WithTokenFunc(func(context.Context) (string, error) {
		asked.Add(1)
		return "secret", nil
	}))
	calls(t, c, 3)
	if asked.Load() == 0 {
		t.Error("the function was not asked")
	}
	c = newClient(t, client.Addresses(address), secure, client.WithTokenFunc(func(context.Context) (string, error) {
		return "", errRegistry
	}))
	if _, err := c.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrUnauthenticated) || !strings.Contains(err.Error(), errRegistry.Error()) {
		t.Errorf("without a token: %v", err)
	}
	if n := c.Stats().Nodes[0]; n.Ejections > 0 {
		t.Errorf("%+v", n)
	}
}
