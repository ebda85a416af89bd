package admin_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/server/admin"
)

// certificate is for 127.0.0.1 and example.com. roots trust it.
func certificate(t *testing.T) (pair tls.Certificate, roots *x509.CertPool) {
	t.Helper()
	s := httptest.NewTLSServer(http.NotFoundHandler())
	s.Close()
	roots = x509.NewCertPool()
	roots.AddCert(s.Certificate())
	return s.TLS.Certificates[0], roots
}

const token = "s3cret"

// startTLS serves c on loopback with TLS, and returns a right Endpoint.
func startTLS(t *testing.T, c manage.Backend) admin.Endpoint {
	t.Helper()
	pair, roots := certificate(t)
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := admin.NewServer(c, admin.Config{Logger: slog.New(slog.DiscardHandler), TCP: &admin.TCP{
		Tokens: auth.NewAdminTokens(token), TLS: &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}},
	}})
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		if err := errors.Join(s.Stop(context.Background()), <-served); err != nil {
			t.Error(err)
		}
	})
	return admin.Endpoint{URL: "https://" + ln.Addr().String(), Token: token, TokenFrom: "/etc/leaf/token", Roots: roots}
}

func dialEndpoint(t *testing.T, e admin.Endpoint) *admin.Client {
	t.Helper()
	c, err := admin.NewEndpointClient(e)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// filled returns a value of type typ that no check refuses, with something in every field.
func filled(typ reflect.Type) reflect.Value {
	v := reflect.New(typ).Elem()
	switch typ.Kind() {
	case reflect.Struct:
		for i := range typ.NumField() {
			v.Field(i).Set(filled(typ.Field(i).Type))
		}
	case reflect.Pointer:
		v.Set(reflect.New(typ.Elem()))
		v.Elem().Set(filled(typ.Elem()))
	case reflect.Slice:
		v.Set(reflect.Append(v, filled(typ.Elem())))
	case reflect.String:
		v.SetString("a/../b c%2F?&=中😀")
	case reflect.Int, reflect.Int64:
		v.SetInt(7)
	case reflect.Bool:
		v.SetBool(true)
	default:
		panic("a request with a " + typ.String())
	}
	return v
}

// TestEndpointCarriesEveryOperation: each row of the table works over TLS with a token as it
// does over the socket.
func TestEndpointCarriesEveryOperation(t *testing.T) {
	t.Parallel()
	over := map[string]func(*testing.T, *mirror) *admin.Client{
		"endpoint": func(t *testing.T, m *mirror) *admin.Client { return dialEndpoint(t, startTLS(t, m)) },
		"socket": func(t *testing.T, m *mirror) *admin.Client {
			c, _ := start(t, m)
			return c
		},
	}
	for name, dial := range over {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &mirror{}
			c := dial(t, m)
			for _, op := range manage.Operations() {
				request := filled(op.Request).Interface()
				reply, err := c.Do(t.Context(), request)
				if err != nil {
					t.Errorf("%s: %v", op.Route, err)
					continue
				}
				if !reflect.DeepEqual(m.last(), request) {
					t.Errorf("%s: sent %+v, and %+v arrived", op.Route, request, m.last())
				}
				if reflect.TypeOf(reply) != op.Reply {
					t.Errorf("%s: the reply is a %T", op.Route, reply)
				}
			}
		})
	}
}

// TestEndpointFaults: whatever is wrong, no operation arrives, and the error says what to do.
func TestEndpointFaults(t *testing.T) {
	t.Parallel()
	plain := func(handler http.HandlerFunc) func(*testing.T, *admin.Endpoint) {
		return func(t *testing.T, e *admin.Endpoint) {
			s := httptest.NewServer(handler)
			t.Cleanup(s.Close)
			e.URL = s.URL
		}
	}
	for name, tt := range map[string]struct {
		spoil func(*testing.T, *admin.Endpoint)
		is    error // default: leaf.ErrNotReady
		want  string
	}{
		"wrong CA":      {spoil: func(_ *testing.T, e *admin.Endpoint) { e.Roots = x509.NewCertPool() }, want: "with --endpoint-ca"},
		"no CA":         {spoil: func(_ *testing.T, e *admin.Endpoint) { e.Roots = nil }, want: "with --endpoint-ca"},
		"wrong name":    {spoil: func(_ *testing.T, e *admin.Endpoint) { e.ServerName = "other.example" }, want: "--endpoint-server-name"},
		"wrong token":   {spoil: func(_ *testing.T, e *admin.Endpoint) { e.Token = "s3cre" }, want: "refuses the token in /etc/leaf/token"},
		"no token":      {spoil: func(_ *testing.T, e *admin.Endpoint) { e.Token = "" }, want: "refuses the token in /etc/leaf/token"},
		"http to https": {spoil: func(_ *testing.T, e *admin.Endpoint) { e.URL = "http" + strings.TrimPrefix(e.URL, "https") }, want: "needs https://"},
		"https to http": {spoil: func(t *testing.T, e *admin.Endpoint) {
			plain(http.NotFound)(t, e)
			e.URL = "https" + strings.TrimPrefix(e.URL, "http")
		}, want: "the port has no TLS"},
		"no listener": {spoil: func(t *testing.T, e *admin.Endpoint) {
			plain(http.NotFound)(t, e)
			ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			e.URL = "https://" + ln.Addr().String()
			if err := ln.Close(); err != nil {
				t.Fatal(err)
			}
		}, is: admin.ErrNoListener, want: "connection refused"},
		"another server": {spoil: plain(http.NotFound), want: "is not the admin.addr of a node"},
		"a proxy whose node is gone": {spoil: plain(func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no upstream", http.StatusBadGateway)
		}), want: `HTTP status 502: "no upstream"`},
		"a page": {spoil: plain(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }), want: "read the node's reply"},
		"no end of a reply": {spoil: plain(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "{")
		}), want: "read the node's reply"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &mirror{}
			e := startTLS(t, m)
			tt.spoil(t, &e)
			err := manage.Tell(t.Context(), dialEndpoint(t, e), manage.DeleteTag{Name: "a"})
			if !errors.Is(err, cmp.Or(tt.is, leaf.ErrNotReady)) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), e.URL) && tt.want != "read the node's reply" {
				t.Errorf("got %v\nwant %q", err, tt.want)
			}
			if m.last() != nil {
				t.Errorf("%T arrived", m.last())
			}
			if strings.Contains(err.Error(), token) {
				t.Errorf("the error tells the token: %v", err)
			}
		})
	}
}

// TestErrorsThroughAnEndpoint: an error of the node itself is the node's, as on the socket.
func TestErrorsThroughAnEndpoint(t *testing.T) {
	t.Parallel()
	f := &mirror{}
	c := dialEndpoint(t, startTLS(t, f))
	for _, class := range leaf.Classes() {
		if class.Err == nil || errors.Is(class.Err, leaf.ErrUnauthenticated) {
			continue
		}
		f.err = class.Err
		if _, err := manage.Ask(t.Context(), c, manage.GetTag{Name: "x"}); !errors.Is(err, class.Err) || err.Error() != class.Err.Error() {
			t.Errorf("%s: %v", class.Code, err)
		}
	}
	f.err = errors.New("a defect")
	if _, err := manage.Ask(t.Context(), c, manage.GetTag{Name: "x"}); err == nil || leaf.ClassOf(err).Err != nil {
		t.Errorf("an internal error: %v", err)
	}
}

// TestRedirectGetsNoToken: a token is for the node that the administrator named.
func TestRedirectGetsNoToken(t *testing.T) {
	t.Parallel()
	asked := make(chan string, 1)
	second := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { asked <- r.Header.Get("Authorization") }))
	t.Cleanup(second.Close)
	for _, status := range []int{301, 302, 303, 307, 308} {
		first := httptest.NewServer(http.RedirectHandler(second.URL+"/v1/tags", status))
		t.Cleanup(first.Close)
		_, err := manage.Ask(t.Context(), dialEndpoint(t, admin.Endpoint{URL: first.URL, Token: token}), manage.ListTags{})
		if !errors.Is(err, leaf.ErrNotReady) || !strings.Contains(err.Error(), second.URL) {
			t.Errorf("%d: %v", status, err)
		}
		select {
		case header := <-asked:
			t.Errorf("%d: the second server was asked with %q", status, header)
		default:
		}
	}
}

// TestTokenInTheClear: no client sends a token where a network can read it.
func TestTokenInTheClear(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]bool{
		"https://node.example:8081": true, "http://127.0.0.1:8081": true, "http://[::1]:8081": true, "http://localhost:8081": true,
		"http://node.example:8081": false, "http://10.0.0.1": false, "http://127.0.0.1.evil.example": false, "http://localhost.evil.example:8081": false, "http://0.0.0.0:8081": false,
		"ftp://127.0.0.1": false, "": false, "node.example:8081": false, "http://127.0.0.1:8081@node.example": false,
	} {
		if _, err := admin.NewEndpointClient(admin.Endpoint{URL: url, Token: token}); (err == nil) != want {
			t.Errorf("%q: %v", url, err)
		}
	}
}

// elsewhere is a connection to another machine.
type elsewhere struct{ net.Conn }

func (elsewhere) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 8081} }

// TestLocalhostThatIsElsewhere: where a name server says that localhost is another machine, no
// token goes there without TLS.
func TestLocalhostThatIsElsewhere(t *testing.T) {
	t.Parallel()
	read := make(chan string, 1)
	e := admin.Endpoint{URL: "http://localhost:8081", Token: token, Dial: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			head := make([]byte, 1<<10)
			n, _ := far.Read(head)
			read <- string(head[:n])
			_ = far.Close()
		}()
		return elsewhere{near}, nil
	}}
	_, err := manage.Ask(t.Context(), dialEndpoint(t, e), manage.ListTags{})
	if !errors.Is(err, leaf.ErrNotReady) || !strings.Contains(err.Error(), "192.0.2.1:8081, which is not loopback") {
		t.Errorf("got %v", err)
	}
	if sent := <-read; sent != "" {
		t.Errorf("sent %q", sent)
	}
}

// TestNodeThatHangs: a command ends though a node accepts the connection and says nothing more.
func TestNodeThatHangs(t *testing.T) {
	t.Parallel()
	for url, limit := range map[string]time.Duration{"https://node.example:8081": 10 * time.Second, "http://127.0.0.1:8081": time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			e := admin.Endpoint{URL: url, Token: token, Dial: func(context.Context, string, string) (net.Conn, error) {
				near, far := net.Pipe()
				go func() { _, _ = io.Copy(io.Discard, far) }()
				return near, nil
			}}
			c, err := admin.NewEndpointClient(e)
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			_, err = manage.Ask(t.Context(), c, manage.ListTags{})
			if took := time.Since(began); !errors.Is(err, leaf.ErrNotReady) || took > limit {
				t.Errorf("%s: %v after %v", url, err, took)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
			synctest.Wait()
		})
	}
}

// TestNoProxy: a token and its requests go to the node, whatever the environment says.
func TestNoProxy(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, "http://proxy.example:3128")
	}
	for _, url := range []string{"https://node.example:8081", "http://127.0.0.1:8081", "https://localhost:8081"} {
		var dialled string
		e := admin.Endpoint{URL: url, Token: token, Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			dialled = address
			return nil, io.ErrUnexpectedEOF
		}}
		if _, err := manage.Ask(t.Context(), dialEndpoint(t, e), manage.ListTags{}); err == nil || !strings.HasSuffix(url, "//"+dialled) {
			t.Errorf("%s: dialled %q, %v", url, dialled, err)
		}
	}
}
