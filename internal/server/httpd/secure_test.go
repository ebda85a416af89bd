package httpd_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/httpd"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
)

// dialTLS connects to s with cfg, which may be changed by the caller before.
func dialTLS(t *testing.T, s *httpd.Server, cfg *tls.Config) *client {
	t.Helper()
	d := tls.Dialer{Config: cfg}
	conn, err := d.DialContext(t.Context(), "tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return &client{conn, t, bufio.NewReader(conn)}
}

// overTLS is the configuration of a server on loopback.
func overTLS(t testing.TB, a *servertest.Authority) *tls.Config {
	t.Helper()
	return &tls.Config{Certificates: []tls.Certificate{a.Server(t)}}
}

// TestTLS: both paths on one connection, the way from one to the other included.
func TestTLS(t *testing.T) {
	t.Parallel()
	ca := servertest.NewAuthority(t)
	s := start(t, quiet(httpd.Config{Access: leaf.Anyone(newIssuer(), nil), TLS: overTLS(t, ca)}))
	c := dialTLS(t, s, &tls.Config{RootCAs: ca.Pool, NextProtos: []string{"h2", "http/1.1"}})
	defer c.Close()
	if got := c.Conn.(*tls.Conn).ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("protocol %q", got)
	}
	c.ask(fastGET("order"), "1")
	c.send(fastGET("order") + fastGET("order") + slowGET("order") + fastGET("order"))
	for _, want := range []string{"2", "3", "4", "5"} {
		c.expect(200, want)
	}
	c.ask(slowGET("order"), "6")
	c.send("GET /api/segment/get/batch?count=100000 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	if r := c.reply(); strings.Count(r.body, "\n") != leaf.MaxBatch {
		t.Errorf("%d lines", strings.Count(r.body, "\n"))
	}
	c.expectEnd()
}

// TestTLSRefuses: what is no HTTP/1.1 over TLS.
func TestTLSRefuses(t *testing.T) {
	t.Parallel()
	ca := servertest.NewAuthority(t)
	s := start(t, quiet(httpd.Config{Access: leaf.Anyone(newIssuer(), nil), TLS: overTLS(t, ca)}))
	for name, cfg := range map[string]*tls.Config{
		"HTTP/2 only": {RootCAs: ca.Pool, NextProtos: []string{"h2"}},
		"TLS 1.0":     {RootCAs: ca.Pool, MaxVersion: tls.VersionTLS10}, //nolint:gosec // it is refused
	} {
		d := tls.Dialer{Config: cfg}
		if conn, err := d.DialContext(t.Context(), "tcp", s.Addr().String()); err == nil {
			conn.Close()
			t.Errorf("%s: connected", name)
		}
	}
	c := dial(t, s)
	c.send(fastGET("order"))
	text, err := io.ReadAll(c.r)
	if !strings.Contains(string(text), "400 Bad Request") || !strings.Contains(string(text), "HTTPS server") {
		t.Errorf("plain HTTP: %q, %v", text, err)
	}
	c = dial(t, s)
	c.send("\x00\x01\x02\x03\x04\x05\x06\x07")
	text, _ = io.ReadAll(c.r)
	if strings.Contains(string(text), "HTTP") {
		t.Errorf("neither TLS nor HTTP: %q", text)
	}
	c = dialTLS(t, s, &tls.Config{RootCAs: ca.Pool})
	defer c.Close()
	c.ask(fastGET("order"), "1") // nothing of this cost an ID or the server
}

// TestCertificate: the name in a verified certificate arrives, on both paths.
func TestCertificate(t *testing.T) {
	t.Parallel()
	ours, theirs := servertest.NewAuthority(t), servertest.NewAuthority(t)
	for _, tt := range []struct {
		name string
		auth tls.ClientAuthType
		cert []tls.Certificate
		want string
	}{
		{"none", tls.VerifyClientCertIfGiven, nil, ""},
		{"common name", tls.RequireAndVerifyClientCert, []tls.Certificate{ours.Client(t, "billing")}, "billing"},
		{"first DNS name", tls.RequireAndVerifyClientCert, []tls.Certificate{ours.Client(t, "billing", "b.example.com", "c.example.com")}, "b.example.com"},
		{"not verified", tls.RequestClientCert, []tls.Certificate{theirs.Client(t, "billing")}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := newKeeper()
			cfg := overTLS(t, ours)
			cfg.ClientAuth, cfg.ClientCAs = tt.auth, ours.Pool
			s := start(t, quiet(httpd.Config{Access: k, TLS: cfg}))
			for _, path := range paths {
				c := dialTLS(t, s, &tls.Config{RootCAs: ours.Pool, Certificates: tt.cert})
				c.send(with(path.get("order"), "Authorization: Bearer s3cret"))
				if r := c.reply(); r.status != 200 {
					t.Errorf("%s: %v", path.name, r)
				}
				c.Close()
				if got, want := k.seen(), (leaf.Credentials{Token: "s3cret", Certificate: tt.want}); !slices.Equal(got, []leaf.Credentials{want}) {
					t.Errorf("%s: shown %+v, want %+v", path.name, got, want)
				}
			}
		})
	}
	t.Run("of a stranger", func(t *testing.T) {
		t.Parallel()
		k := newKeeper()
		cfg := overTLS(t, ours)
		cfg.ClientAuth, cfg.ClientCAs = tls.RequireAndVerifyClientCert, ours.Pool
		s := start(t, quiet(httpd.Config{Access: k, TLS: cfg}))
		c := dialTLS(t, s, &tls.Config{RootCAs: ours.Pool, Certificates: []tls.Certificate{theirs.Client(t, "billing")}})
		defer c.Close()
		_, _ = io.WriteString(c, fastGET("order"))
		if b, err := io.ReadAll(c.r); len(b) > 0 || err == nil {
			t.Errorf("got %q, %v", b, err)
		}
		if got := k.seen(); len(got) > 0 {
			t.Errorf("Access was shown %+v", got)
		}
	})
}

// tlsBubble is bubble with TLS; dial makes the handshake.
func tlsBubble(t *testing.T, cfg httpd.Config, f func(t *testing.T, s *httpd.Server, p *pipes, dial func() *client)) {
	t.Helper()
	fakeTime(t, func(t *testing.T) {
		ca, p := servertest.NewAuthority(t), newPipes()
		cfg.TLS = overTLS(t, ca)
		s, err := httpd.New(p, quiet(cfg))
		if err != nil {
			t.Fatal(err)
		}
		run(t, s)
		f(t, s, p, func() *client {
			raw := p.dial(t)
			conn := tls.Client(raw.Conn, &tls.Config{RootCAs: ca.Pool, ServerName: "127.0.0.1"})
			if err := conn.HandshakeContext(t.Context()); err != nil {
				t.Fatal(err)
			}
			return &client{conn, t, bufio.NewReader(conn)}
		})
	})
}

// TestTLSHandshakeTimeout: it is part of the time for the first head.
func TestTLSHandshakeTimeout(t *testing.T) {
	t.Parallel()
	tlsBubble(t, httpd.Config{}, func(t *testing.T, _ *httpd.Server, p *pipes, dial func() *client) {
		c, begin := p.dial(t), time.Now()
		if got := c.lifetime(begin); got != 5*time.Second {
			t.Errorf("silent: closed after %v, want 5s", got)
		}
		c, begin = p.dial(t), time.Now()
		c.trickle("\x16\x03\x01\x40\x00"+strings.Repeat("a", 200), 100*time.Millisecond)
		if got := c.lifetime(begin); got != 5*time.Second {
			t.Errorf("slow handshake: closed after %v, want 5s", got)
		}
		c, begin = dial(), time.Now()
		if got := c.lifetime(begin); got != 5*time.Second {
			t.Errorf("no head: closed after %v, want 5s", got)
		}
		c = dial()
		c.send("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		c.expect(200, "ok\n")
		if got := c.lifetime(time.Now()); got < 60*time.Second || got > 61*time.Second {
			t.Errorf("idle: closed after %v, want 60s", got)
		}
	})
}

// TestTLSShutdown: connections in every state end at once, with the good-bye of TLS.
func TestTLSShutdown(t *testing.T) {
	t.Parallel()
	tlsBubble(t, httpd.Config{Access: leaf.Anyone(newIssuer(), nil)}, func(t *testing.T, s *httpd.Server, p *pipes, dial func() *client) {
		silent, fast, slow := p.dial(t), dial(), dial()
		fast.ask(fastGET("order"), "1")
		slow.ask(slowGET("order"), "2")
		synctest.Wait()
		done := make(chan struct{})
		for _, c := range []*client{silent, fast, slow} {
			go func() {
				c.expectEnd()
				done <- struct{}{}
			}()
		}
		begin := time.Now()
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		for range 3 {
			<-done
		}
		if got := time.Since(begin); got > 10*time.Millisecond {
			t.Errorf("took %v", got)
		}
	})
}

// TestTLSShutdownGivesUp: clients that do not read cannot hold it up beyond its
// deadline, although each good-bye of TLS may wait for 5 s.
func TestTLSShutdownGivesUp(t *testing.T) {
	t.Parallel()
	for _, path := range paths {
		t.Run(path.name, func(t *testing.T) {
			t.Parallel()
			iss := newIssuer()
			tlsBubble(t, httpd.Config{Access: leaf.Anyone(iss, nil)}, func(t *testing.T, s *httpd.Server, _ *pipes, dial func() *client) {
				iss.entered, iss.release = make(chan struct{}, 10), make(chan struct{})
				for range 5 {
					dial().send(path.get("block"))
				}
				for range 5 {
					<-iss.entered
				}
				begin := time.Now()
				ctx, cancel := within(time.Second)
				defer cancel()
				if err := s.Shutdown(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v", err)
				}
				if got := time.Since(begin); got > 1100*time.Millisecond {
					t.Errorf("took %v", got)
				}
			})
		})
	}
}

// TestTLSConnectionLimit: a connection beyond the limit learns why.
func TestTLSConnectionLimit(t *testing.T) {
	t.Parallel()
	tlsBubble(t, httpd.Config{Access: leaf.Anyone(newIssuer(), nil), MaxConns: 1}, func(t *testing.T, _ *httpd.Server, _ *pipes, dial func() *client) {
		dial().ask(fastGET("order"), "1")
		c := dial()
		if r := c.reply(); r.status != http.StatusServiceUnavailable || !strings.Contains(r.body, `"code":"too_many_connections"`) {
			t.Errorf("got %v", r)
		}
		c.expectEnd()
	})
}

// TestTLSConfig: a server without a certificate does not start.
func TestTLSConfig(t *testing.T) {
	t.Parallel()
	if _, err := httpd.New(servertest.Listen(t, "127.0.0.1:0"), httpd.Config{TLS: &tls.Config{MinVersion: tls.VersionTLS12}}); !errors.Is(err, leaf.ErrBadRequest) {
		t.Errorf("got %v", err)
	}
	given := overTLS(t, servertest.NewAuthority(t))
	given.NextProtos = []string{"h2"}
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s, err := httpd.New(ln, httpd.Config{TLS: given})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Shutdown(t.Context()) }()
	if !slices.Equal(given.NextProtos, []string{"h2"}) {
		t.Error("the caller's configuration was changed")
	}
}
