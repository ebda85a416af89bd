package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/idtime"
	"github.com/leaf-idgen/leaf/internal/server/console"
)

// fake is a node without engines.
type fake struct {
	idtime.None
	tags    int
	alarms  []console.Alarm
	issued  atomic.Int64 // of each tag
	walks   atomic.Int64
	cluster func(ctx context.Context) (any, error)
}

func (f *fake) Overview() console.Overview {
	return console.Overview{Version: "v1.2.3", Now: time.Now(), Modes: []console.Mode{{Name: "segment", Enabled: true, Ready: true}}, Alarms: append([]console.Alarm{}, f.alarms...), Servers: []console.Server{}, Backends: []console.Backend{}, Tags: f.tags}
}
func (f *fake) Snowflake() console.Snowflake { return console.Snowflake{Worker: -1} }
func (f *fake) Rows(_ context.Context, after string, limit int) (any, string, error) {
	return []string{after}, fmt.Sprint(limit), nil
}
func (f *fake) Workers(context.Context) (any, error) { return []int{}, nil }
func (f *fake) Cluster(ctx context.Context) (any, error) {
	if f.cluster == nil {
		return nil, leaf.ErrDisabled
	}
	return f.cluster(ctx)
}
func (f *fake) Encode(p console.Parts) (any, error) { return p, nil }
func (f *fake) Counters() console.Counters          { return console.Counters{Issued: f.issued.Load()} }

func (f *fake) Tags() []console.Usage {
	f.walks.Add(1)
	all := make([]console.Usage, f.tags)
	n := f.issued.Load()
	for i := range all {
		lo := int64(1)<<62 + int64(i)*1000
		all[i] = console.Usage{
			Tag: fmt.Sprintf("tag-%06d", (i*7919)%f.tags), Step: 1000, Length: 1000, Current: leaf.Range{Lo: lo, Hi: lo + 1000}, Position: lo + int64(i)%1000,
			Stock: int64(i), Issued: n * int64(i), Latched: i == 7,
		}
	}
	return all
}

// site is a console behind an HTTP server, and a browser's cookies.
type site struct {
	t       *testing.T
	console *console.Console
	url     string
	client  *http.Client
	token   atomic.Pointer[string] // the one that is accepted; nil: none is needed
}

func serve(t *testing.T, f *fake, token string, edit func(*console.Config)) *site {
	t.Helper()
	s := &site{t: t}
	if token != "" {
		s.token.Store(&token)
	}
	c := console.Config{
		Source: f, Monitor: console.NewMonitor(f), Logger: slog.New(slog.DiscardHandler), Live: true,
		Required: func() bool { return s.token.Load() != nil },
		Check: func(shown string, _ netip.Addr) error {
			if valid := s.token.Load(); valid != nil && *valid != shown {
				return leaf.ErrUnauthenticated
			}
			return nil
		},
	}
	if edit != nil {
		edit(&c)
	}
	s.console = console.New(c)
	server := httptest.NewServer(s.console)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s.url, s.client = server.URL+"/console/", &http.Client{Jar: jar, Transport: &http.Transport{}}
	t.Cleanup(func() {
		s.console.Close()
		s.client.CloseIdleConnections()
		server.Close()
	})
	return s
}

// ask sends a request, with header fields as "Name: value".
func (s *site) ask(method, path, body string, header ...string) (int, http.Header, string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for _, field := range header {
		name, value, _ := strings.Cut(field, ": ")
		if name == "Host" {
			req.Host = value
		}
		req.Header.Set(name, value)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(text)
}

const own = console.Header + ": 1"

func (s *site) login(token string) int {
	s.t.Helper()
	status, _, _ := s.ask(http.MethodPost, "api/login", `{"token":"`+token+`"}`, own)
	return status
}

// readings are all addresses that tell something of the node.
var readings = []string{"api/overview", "api/history", "api/tags", "api/rows", "api/snowflake", "api/workers", "api/cluster", "api/decode?id=1", "api/encode?time=2026-01-01T00:00:00Z", "api/span", "api/live?view=overview"}

// TestNothingWithoutAToken is promise 1 of the package.
func TestNothingWithoutAToken(t *testing.T) {
	t.Parallel()
	s := serve(t, &fake{}, "s3cret", nil)
	for _, path := range readings {
		for _, header := range []string{own, "Cookie: leaf-console=guess", "Authorization: Bearer s3cret"} {
			if status, _, body := s.ask(http.MethodGet, path, "", header); status != http.StatusUnauthorized || strings.Contains(body, "v1.2.3") {
				t.Errorf("%s with %s: %d %s", path, header, status, body)
			}
		}
	}
	if got := s.login("wrong"); got != http.StatusUnauthorized {
		t.Errorf("a wrong token: %d", got)
	}
	status, header, _ := s.ask(http.MethodPost, "api/login", `{"token":"s3cret"}`, own)
	cookie := header.Get("Set-Cookie")
	if status != http.StatusOK || !strings.Contains(cookie, "HttpOnly") || !strings.Contains(cookie, "SameSite=Strict") || strings.Contains(cookie, "s3cret") {
		t.Errorf("login: %d, %s", status, cookie)
	}
	if status, _, body := s.ask(http.MethodGet, "api/overview", ""); status != http.StatusOK || !strings.Contains(body, "v1.2.3") {
		t.Errorf("after the login: %d %s", status, body)
	}
	if status, _, _ := s.ask(http.MethodPost, "api/logout", "", own); status != http.StatusOK {
		t.Errorf("logout: %d", status)
	}
	if status, _, _ := s.ask(http.MethodGet, "api/overview", ""); status != http.StatusUnauthorized {
		t.Errorf("after the logout: %d", status)
	}
}

// TestSessionEndsWithItsToken is promise 2, streams included.
func TestSessionEndsWithItsToken(t *testing.T) {
	t.Parallel()
	s := serve(t, &fake{}, "s3cret", nil)
	if s.login("s3cret") != http.StatusOK {
		t.Fatal("no login")
	}
	lines := s.stream("api/live?view=overview")
	lines.until("data: ")
	other := "another"
	s.token.Store(&other)
	lines.until("event: end")
	if status, _, _ := s.ask(http.MethodGet, "api/overview", ""); status != http.StatusUnauthorized {
		t.Errorf("with the old token: %d", status)
	}
	valid := "s3cret" // the session has ended, and does not come back with the token
	s.token.Store(&valid)
	if status, _, _ := s.ask(http.MethodGet, "api/overview", ""); status != http.StatusUnauthorized {
		t.Errorf("with the old token, accepted again: %d", status)
	}
}

// TestOtherSites is promise 3.
func TestOtherSites(t *testing.T) {
	t.Parallel()
	s := serve(t, &fake{}, "s3cret", nil)
	if s.login("s3cret") != http.StatusOK {
		t.Fatal("no login")
	}
	for _, elsewhere := range []string{"Origin: https://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"} {
		for _, path := range append([]string{"api/session"}, readings...) {
			if status, _, _ := s.ask(http.MethodGet, path, "", own, elsewhere); status != http.StatusUnauthorized {
				t.Errorf("%s with %s: %d", path, elsewhere, status)
			}
		}
		if status, _, _ := s.ask(http.MethodPost, "api/login", `{"token":"s3cret"}`, own, elsewhere); status != http.StatusUnauthorized {
			t.Errorf("login with %s: %d", elsewhere, status)
		}
	}
	for _, path := range []string{"api/login", "api/logout"} {
		if status, _, _ := s.ask(http.MethodPost, path, `{"token":"s3cret"}`); status != http.StatusUnauthorized {
			t.Errorf("%s without the header: %d", path, status)
		}
	}
	if status, header, _ := s.ask(http.MethodOptions, "api/overview", "", "Origin: https://evil.example"); status < 400 || header.Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("a preflight: %d %v", status, header)
	}

	unguarded := serve(t, &fake{}, "", nil)
	for host, want := range map[string]int{"": 200, "localhost:1": 200, "[::1]:80": 200, "evil.example": 401} {
		if status, _, _ := unguarded.ask(http.MethodGet, "api/overview", "", "Host: "+host); status != want {
			t.Errorf("without a token, for Host %q: %d, want %d", host, status, want)
		}
	}
}

// TestAdmits: the administrator's interface lets only requests of this page through.
func TestAdmits(t *testing.T) {
	t.Parallel()
	for _, readOnly := range []bool{false, true} {
		s := serve(t, &fake{}, "s3cret", func(c *console.Config) { c.ReadOnly = readOnly })
		status, header, _ := s.ask(http.MethodPost, "api/login", `{"token":"s3cret"}`, own)
		if status != http.StatusOK {
			t.Fatal(status)
		}
		cookie, _, _ := strings.Cut(header.Get("Set-Cookie"), ";")
		for _, tt := range []struct {
			header map[string]string
			want   bool
		}{
			{map[string]string{"Cookie": cookie, console.Header: "1"}, !readOnly},
			{map[string]string{"Cookie": cookie, console.Header: "1", "Sec-Fetch-Site": "same-origin"}, !readOnly},
			{map[string]string{"Cookie": cookie}, false},
			{map[string]string{console.Header: "1"}, false},
			{map[string]string{"Cookie": cookie + "x", console.Header: "1"}, false},
			{map[string]string{"Cookie": cookie, console.Header: "1", "Sec-Fetch-Site": "cross-site"}, false},
			{map[string]string{"Cookie": cookie, console.Header: "1", "Origin": "http://evil.example"}, false},
		} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, s.url, nil)
			for name, value := range tt.header {
				r.Header.Set(name, value)
			}
			if _, got := s.console.Admits(r); got != tt.want {
				t.Errorf("read-only %t, %v: admitted %t", readOnly, tt.header, got)
			}
		}
	}
}

// TestSecureCookie: over TLS the cookie is bound to the host, and to TLS.
func TestSecureCookie(t *testing.T) {
	t.Parallel()
	s := serve(t, &fake{}, "s3cret", func(c *console.Config) { c.Secure = true })
	_, header, _ := s.ask(http.MethodPost, "api/login", `{"token":"s3cret"}`, own)
	if cookie := header.Get("Set-Cookie"); !strings.HasPrefix(cookie, "__Host-") || !strings.Contains(cookie, "; Secure") || !strings.Contains(cookie, "; Path=/;") {
		t.Errorf("cookie %s", cookie)
	}
}

// TestSessionsAreBounded: the oldest session ends when there are too many.
func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()
	s := serve(t, &fake{}, "s3cret", nil)
	s.login("s3cret")
	first := s.client.Jar
	other, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	s.client.Jar = other
	for range 1000 {
		if got := s.login("s3cret"); got != http.StatusOK {
			t.Fatal(got)
		}
	}
	if status, _, _ := s.ask(http.MethodGet, "api/overview", ""); status != http.StatusOK {
		t.Errorf("the newest session: %d", status)
	}
	s.client.Jar = first
	if status, _, _ := s.ask(http.MethodGet, "api/overview", ""); status != http.StatusUnauthorized {
		t.Errorf("the oldest session: %d", status)
	}
}

// TestOneReadingForAll: a page that asks other nodes asks once for all who look.
func TestOneReadingForAll(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	begun := make(chan struct{})
	s := serve(t, &fake{cluster: func(context.Context) (any, error) {
		asked.Add(1)
		<-begun
		return "nodes", nil
	}}, "", nil)
	results := make(chan error, 5)
	for range cap(results) {
		go func() {
			resp, err := s.client.Get(s.url + "api/cluster")
			if err == nil {
				_, err = io.Copy(io.Discard, resp.Body)
				err = errors.Join(err, resp.Body.Close())
			}
			results <- err
		}()
	}
	close(begun)
	for range cap(results) {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	if n := asked.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

// TestReadingThatPanics: who asks for a reading that panics gets an error, and the node goes on.
func TestReadingThatPanics(t *testing.T) {
	t.Parallel()
	s := serve(t, &fake{cluster: func(context.Context) (any, error) { panic("planted") }}, "", nil)
	if status, _, body := s.ask(http.MethodGet, "api/cluster", ""); status != http.StatusInternalServerError || strings.Contains(body, "planted") {
		t.Errorf("%d %s", status, body)
	}
	if status, _, _ := s.ask(http.MethodGet, "api/workers", ""); status != http.StatusOK {
		t.Errorf("another reading: %d", status)
	}
}

// decoded asks for a reading.
func decoded[T any](s *site, path string) (v T) {
	s.t.Helper()
	status, _, body := s.ask(http.MethodGet, path, "")
	if err := json.Unmarshal([]byte(body), &v); err != nil || status != http.StatusOK {
		s.t.Fatalf("%s: %d %s: %v", path, status, body, err)
	}
	return v
}
