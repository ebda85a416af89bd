package admin_test

import (
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/internal/server/admin"
)

// TestTCP: over TCP every administrative request needs a token, on loopback too, where any
// user of the machine and any web page can connect. Open routes need none.
func TestTCP(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, token string
		path, host  string // of the request; host "": the address
		header      http.Header
		want        int
	}{
		{name: "no token is valid", path: "/v1/info", want: 401},
		{name: "no token is valid, one is shown", path: "/v1/info", header: http.Header{"Authorization": {"Bearer any"}}, want: 401},
		{name: "no token is valid, an empty one is shown", path: "/v1/info", header: http.Header{"Authorization": {"Bearer "}}, want: 401},
		{name: "open route", path: "/healthz", host: "evil.example", header: http.Header{"Origin": {"http://evil.example"}}, want: 204},
		{name: "no token", token: "s3cret", path: "/v1/info", want: 401},
		{name: "wrong token", token: "s3cret", path: "/v1/info", header: http.Header{"Authorization": {"Bearer s3cre"}}, want: 401},
		{name: "empty token", token: "s3cret", path: "/v1/info", header: http.Header{"Authorization": {"Bearer "}}, want: 401},
		{name: "token twice", token: "s3cret", path: "/v1/info", header: http.Header{"Authorization": {"Bearer s3cret", "Bearer s3cret"}}, want: 400},
		{name: "scheme in lower case", token: "s3cret", path: "/v1/info", header: http.Header{"Authorization": {"bearer s3cret"}}, want: 200},
		{name: "no scheme", token: "s3cret", path: "/v1/info", header: http.Header{"Authorization": {"s3cret"}}, want: 401},
		{name: "token", token: "s3cret", path: "/v1/info", header: http.Header{"Authorization": {"Bearer s3cret"}}, want: 200},
		{name: "token by name from a page", token: "s3cret", path: "/v1/info", host: "leaf.example", header: http.Header{"Authorization": {"Bearer s3cret"}, "Origin": {"https://ops.example"}}, want: 200},
		{name: "open route with a token set", token: "s3cret", path: "/healthz", want: 204},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			addr := startTCP(t, tt.token)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+tt.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if tt.header != nil {
				req.Header = tt.header
			}
			req.Host = tt.host
			tr := &http.Transport{DisableKeepAlives: true}
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			body, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != tt.want {
				t.Errorf("status %d, want %d: %s", resp.StatusCode, tt.want, body)
			}
			if tt.want == 401 && !strings.Contains(string(body), `"code":"unauthenticated"`) {
				t.Errorf("body %s", body)
			}
		})
	}
}

// TestSession: a request without a token is the session's to decide, where a token is
// needed; one with a token is not.
func TestSession(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, token, shown string
		session            bool
		want               int
	}{
		{"session", "s3cret", "", true, 200},
		{"no session", "s3cret", "", false, 401},
		{"session and a wrong token", "s3cret", "Bearer wrong", true, 401},
		{"session, but no token is valid", "", "", true, 401},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			addr := startTCP(t, tt.token, func(c *admin.TCP) { c.Session = func(*http.Request) (string, bool) { return tt.token, tt.session } })
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/v1/info", nil)
			if err != nil {
				t.Fatal(err)
			}
			if tt.shown != "" {
				req.Header.Set("Authorization", tt.shown)
			}
			resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = resp.Body.Close() }()
			if resp.StatusCode != tt.want {
				t.Errorf("status %d, want %d", resp.StatusCode, tt.want)
			}
		})
	}
}

// TestSpellingsOfNoToken: no spelling of a token that is not there is one.
func TestSpellingsOfNoToken(t *testing.T) {
	t.Parallel()
	addr := startTCP(t, "s3cret")
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	for value, want := range map[string]int{
		"": 401, "Bearer": 401, "Bearer ": 401, "Bearer  ": 401, "Bearer s3cre": 401, "Bearer s3cret2": 401, "Basic s3cret": 401, "Bearer s3cret": 200,
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/v1/info", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header["Authorization"] = []string{value}
		resp, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%q: %d, want %d", value, resp.StatusCode, want)
		}
	}
}

// TestHTTP2OpensNothing: HTTP/2, which writes header fields in another way, is no way past
// the token: the port does not speak it.
func TestHTTP2OpensNothing(t *testing.T) {
	t.Parallel()
	addr := startTCP(t, "s3cret")
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: &protocols}
	defer transport.CloseIdleConnections()
	for _, value := range []string{"", "Bearer", "Bearer ", "Bearer s3cret"} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/v1/info", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header["Authorization"] = []string{value}
		resp, err := transport.RoundTrip(r)
		if err == nil {
			resp.Body.Close()
			t.Errorf("%q: %s %d", value, resp.Proto, resp.StatusCode)
		}
	}
}

// TestTCPConnections: strangers who connect and say nothing cost a bounded number of file
// descriptors, which the public servers need, too.
func TestTCPConnections(t *testing.T) {
	t.Parallel()
	addr := startTCP(t, "")
	dial := func() net.Conn {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		return conn
	}
	// answered tells a connection that is served from one that was closed at once.
	answered := func(conn net.Conn) bool {
		_, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
		_, err := io.ReadFull(conn, make([]byte, len("HTTP/1.1 204")))
		return err == nil
	}
	var open []net.Conn
	for range maxTCP {
		conn := dial()
		if open = append(open, conn); !answered(conn) {
			t.Fatalf("connection %d was refused", len(open))
		}
	}
	if answered(dial()) {
		t.Errorf("connection %d was served", maxTCP+1)
	}
	_ = open[0].Close()
	for !answered(dial()) { // until the server has seen it
		if t.Context().Err() != nil {
			t.Fatal("no room after one has left")
		}
	}
}

// maxTCP is the limit of startTCP.
const maxTCP = 3

func startTCP(t *testing.T, token string, edit ...func(*admin.TCP)) (addr string) {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	tokens := auth.NewAdminTokens()
	if token != "" {
		tokens = auth.NewAdminTokens("other", token)
	}
	c := &admin.TCP{
		Tokens:   tokens,
		MaxConns: maxTCP,
		Open:     map[string]http.Handler{"GET /healthz": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })},
	}
	for _, f := range edit {
		f(c)
	}
	s := admin.NewServer(&mirror{}, admin.Config{Logger: slog.New(slog.DiscardHandler), TCP: c})
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	t.Cleanup(func() {
		if err := s.Stop(t.Context()); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return ln.Addr().String()
}
