package httpd_test

import (
	"context"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/httpd"
)

// asksForToken is a leaf.Access with one token, which counts what it refuses.
type asksForToken struct {
	leaf.Access
	refused *int
}

func (asksForToken) Guarded() bool { return true }

func (a asksForToken) Open(c leaf.Credentials) (*leaf.Issuers, error) {
	if c.Token != "s3cret" {
		*a.refused++
		return nil, leaf.ErrUnauthenticated
	}
	return a.Access.Open(c)
}

// TestWebPages: no page of another site takes IDs or reads the tables, unless it shows a
// token. Programs and proxies are not mistaken for pages.
func TestWebPages(t *testing.T) {
	t.Parallel()
	loopback, public := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8080}, &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 8080}
	for _, tt := range []struct {
		name   string
		local  net.Addr
		host   string
		path   string
		header http.Header
		token  bool
		want   int
	}{
		{name: "program", local: loopback, host: "127.0.0.1:8080", path: "/db", want: 200},
		{name: "IPv6", local: loopback, host: "[::1]:8080", path: "/db", want: 200},
		{name: "typed address", local: loopback, host: "localhost:8080", path: "/cache", header: http.Header{"Sec-Fetch-Site": {"none"}}, want: 200},
		{name: "rebound name", local: loopback, host: "evil.example:8080", path: "/db", want: 401},
		{name: "rebound name posts", local: loopback, host: "evil.example:8080", path: "POST /v1/next", header: http.Header{"Origin": {"http://evil.example:8080"}}, want: 401},
		{name: "program behind a proxy posts", local: loopback, host: "ids.example", path: "POST /v1/next", want: 200},
		{name: "rebound name with any token", local: loopback, host: "evil.example:8080", path: "/db", header: http.Header{"Authorization": {"Bearer x"}}, want: 401},
		{name: "a name of a public address", local: public, host: "leaf.example:8080", path: "/db", want: 200},
		{name: "page of another site", local: public, host: "leaf.example:8080", path: "POST /v1/next", header: http.Header{"Origin": {"http://evil.example"}}, want: 401},
		{name: "page of another port", local: loopback, host: "127.0.0.1:8080", path: "POST /v1/next", header: http.Header{"Origin": {"http://127.0.0.1:3000"}}, want: 401},
		{name: "page without a name", local: loopback, host: "127.0.0.1:8080", path: "POST /v1/next", header: http.Header{"Origin": {"null"}}, want: 401},
		{name: "page without origin", local: public, host: "leaf.example", path: "/cache", header: http.Header{"Sec-Fetch-Site": {"cross-site"}}, want: 401},
		{name: "own page", local: public, host: "leaf.example:8080", path: "POST /v1/next", header: http.Header{"Origin": {"http://leaf.example:8080"}, "Sec-Fetch-Site": {"same-origin"}}, want: 200},
		{name: "page with a token", local: loopback, host: "leaf.example", path: "POST /v1/next", token: true, header: http.Header{"Origin": {"https://ops.example"}, "Authorization": {"Bearer s3cret"}}, want: 200},
		{name: "page with a wrong token", local: loopback, host: "leaf.example", path: "/db", token: true, header: http.Header{"Authorization": {"Bearer s3cre"}}, want: 401},
		{name: "proxy on the original's path", local: loopback, host: "ids.example", path: "/api/segment/get/a?count=1", want: 200},
		{name: "health check", local: loopback, host: "ids.example", path: "/healthz", want: 200},
	} {
		access := leaf.Anyone(newIssuer(), newIssuer())
		refused := 0
		if tt.token {
			access = asksForToken{access, &refused}
		}
		empty := func(context.Context, httpd.PageRequest) (httpd.Page, error) { return httpd.Page{Rows: []string{}}, nil }
		h := httpd.Handler(httpd.Config{Access: access, Cache: empty, DB: empty})
		method, path, posted := strings.Cut(tt.path, " ")
		if !posted {
			method, path = http.MethodGet, tt.path
		}
		r := httptest.NewRequestWithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, tt.local), method, path, strings.NewReader(`{"requests":[{"tag":"a"}]}`))
		r.Host = tt.host
		maps.Copy(r.Header, tt.header)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("%s: got %d %s, want %d", tt.name, w.Code, w.Body, tt.want)
		}
		if tt.want == http.StatusOK && refused > 0 {
			t.Errorf("%s: %d requests count as refused", tt.name, refused)
		}
	}
}
