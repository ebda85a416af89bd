package app_test

import (
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/server/console"
	"github.com/leaf-idgen/leaf/segment"
)

// ask sends a request to a port of a node.
func ask(t *testing.T, method, url, body string, header map[string]string) (int, http.Header, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	tr := &http.Transport{DisableKeepAlives: true}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(text)
}

// TestConsoleActs: the session of a browser acts through the administrator's interface, and
// only with the header of the page.
func TestConsoleActs(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.Admin.Tokens = []string{"s3cret"}
	a, _ := start(t, c)
	admin := "http://" + a.AddrOf("admin")
	if status, header, _ := ask(t, http.MethodGet, admin+"/", "", nil); status != http.StatusSeeOther || header.Get("Location") != console.Prefix {
		t.Errorf("/: %d, %v", status, header)
	}
	own := map[string]string{console.Header: "1"}
	if status, _, _ := ask(t, http.MethodGet, admin+"/console/api/overview", "", own); status != http.StatusUnauthorized {
		t.Errorf("without a session: %d", status)
	}
	status, header, body := ask(t, http.MethodPost, admin+"/console/api/login", `{"token":"s3cret"}`, own)
	if status != http.StatusOK {
		t.Fatalf("login: %d %s", status, body)
	}
	cookie, _, _ := strings.Cut(header.Get("Set-Cookie"), ";")
	row := `{"tag":"order","start":"1","step":10}`
	if status, _, _ := ask(t, http.MethodPost, admin+"/v1/tag", row, map[string]string{"Cookie": cookie}); status != http.StatusUnauthorized {
		t.Errorf("an action without the header of the page: %d", status)
	}
	acts := map[string]string{"Cookie": cookie, console.Header: "1"}
	if status, _, body := ask(t, http.MethodPost, admin+"/v1/tag", row, acts); status != http.StatusOK {
		t.Errorf("an action: %d %s", status, body)
	}
	_, _, body = ask(t, http.MethodGet, admin+"/console/api/overview", "", acts)
	var o console.Overview
	if err := json.Unmarshal([]byte(body), &o); err != nil || len(o.Modes) != 2 || !o.Modes[0].Ready || o.DataDir == "" || len(o.Backends) < 2 || !o.Backends[0].Healthy || len(o.Servers) != len(c.Listeners()) {
		t.Errorf("overview: %s, %v", body, err)
	}
	c.HTTP.Addr, c.Admin.Tokens = a.Addr(), []string{"another"}
	if _, err := a.Reload(c); err != nil {
		t.Fatal(err)
	}
	if status, _, _ := ask(t, http.MethodPost, admin+"/v1/tag", row, acts); status != http.StatusUnauthorized {
		t.Errorf("an action after the token was exchanged: %d", status)
	}
}

// TestConsoleRoles: a named token with the role read sees the pages and has no actions, one with
// the role admin has them, and one with neither does not get in.
func TestConsoleRoles(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.Auth.Named, c.Admin.Tokens = "store", []string{"s3cret"}
	a, _ := start(t, c)
	admin, own := "http://"+a.AddrOf("admin"), map[string]string{console.Header: "1"}
	for _, tt := range []struct {
		role              string
		login, sees, acts int
		actions           string
	}{
		{"issue", http.StatusForbidden, 0, 0, ""},
		{"read", http.StatusOK, http.StatusOK, http.StatusForbidden, `"actions":false`},
		{"admin", http.StatusOK, http.StatusOK, http.StatusOK, `"actions":true`},
	} {
		secret, digest := auth.NewSecret()
		if _, err := manage.Ask(t.Context(), a.Backend(), manage.CreateToken{Name: tt.role, Digest: digest, Roles: []string{tt.role}}); err != nil {
			t.Fatal(err)
		}
		status, header, body := ask(t, http.MethodPost, admin+"/console/api/login", `{"token":"`+secret+`"}`, own)
		if status != tt.login {
			t.Errorf("%s: login: %d %s", tt.role, status, body)
		}
		if status != http.StatusOK {
			continue
		}
		cookie, _, _ := strings.Cut(header.Get("Set-Cookie"), ";")
		signed := map[string]string{"Cookie": cookie, console.Header: "1"}
		if status, _, body := ask(t, http.MethodGet, admin+"/console/api/session", "", signed); status != tt.sees || !strings.Contains(body, tt.actions) {
			t.Errorf("%s: session: %d %s", tt.role, status, body)
		}
		if status, _, body := ask(t, http.MethodPost, admin+"/v1/tag", `{"tag":"order","start":"1","step":10}`, signed); status != tt.acts {
			t.Errorf("%s: an action: %d %s", tt.role, status, body)
		}
	}
}

// TestPublicConsole: it is there if the configuration says so, shows no text that names a
// host or a file to strangers, and lets no session act.
func TestPublicConsole(t *testing.T) {
	t.Parallel()
	closed, _ := start(t, embedded(shortDir(t)))
	if status, _ := get(t, closed, "/console/"); status != http.StatusNotFound {
		t.Errorf("without http.console: %d", status)
	}
	dir := shortDir(t)
	c := embedded(dir)
	c.HTTP.Console, c.HTTP.Addr, c.Auth.Tokens = true, "0.0.0.0:0", []string{"client"}
	a, _ := start(t, c)
	_, port, _ := strings.Cut(a.Addr(), "]:")
	url := "http://127.0.0.1:" + port
	if status, _, _ := ask(t, http.MethodGet, url+"/console/", "", nil); status != http.StatusOK {
		t.Errorf("page: %d", status)
	}
	own := map[string]string{console.Header: "1"}
	if status, _, _ := ask(t, http.MethodGet, url+"/console/api/overview", "", own); status != http.StatusUnauthorized {
		t.Errorf("without a token: %d", status)
	}
	_, header, _ := ask(t, http.MethodPost, url+"/console/api/login", `{"token":"client"}`, own)
	cookie, _, _ := strings.Cut(header.Get("Set-Cookie"), ";")
	signed := map[string]string{"Cookie": cookie, console.Header: "1"}
	for _, path := range []string{"overview", "snowflake", "workers", "tags", "history", "session"} {
		status, _, body := ask(t, http.MethodGet, url+"/console/api/"+path, "", signed)
		if status != http.StatusOK || strings.Contains(body, dir) || strings.Contains(body, "sqlite:") || strings.Contains(body, `"actions":true`) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if _, text := get(t, a, "/metrics"); !strings.Contains(text, `leaf_requests_refused_total{reason="unauthenticated"} 0`) {
		t.Error("who looks at the console counts as a client that was refused")
	}
	if status, _, _ := ask(t, http.MethodGet, url+"/console/api/live?view=overview", "", signed); status != http.StatusNotImplemented {
		t.Errorf("a stream on the public port: %d", status)
	}
	if status, _, _ := ask(t, http.MethodGet, "http://"+a.AddrOf("admin")+"/v1/info", "", signed); status != http.StatusUnauthorized {
		t.Errorf("an action with a session of the public port: %d", status)
	}
}

// TestPublicConsoleOfALostTable: while the database keeps a tag from its next range, the public
// console says so, and names no host, file or database to strangers.
func TestPublicConsoleOfALostTable(t *testing.T) {
	t.Parallel()
	c, file := embedded(shortDir(t)), filepath.Join(t.TempDir(), "a.db")
	c.Stores, c.Segment.LoadTimeout, c.Snowflake.Enable = []string{"sqlite:" + file}, 10*time.Second, false
	c.HTTP.Console, c.HTTP.Addr, c.Auth.Open = true, ":0", true
	a, _ := start(t, c)
	if _, err := manage.Ask(t.Context(), a.Backend(), manage.CreateTag{NewRow: segment.NewRow{Tag: "order", Start: 1, Step: 1}}); err != nil {
		t.Fatal(err)
	}
	if status, body := get(t, a, "/api/segment/get/order"); status != http.StatusOK {
		t.Fatalf("the first ID: %d %s", status, body)
	}
	execute(t, openFile(t, file), "DROP TABLE leaf_alloc")
	for status := http.StatusOK; status == http.StatusOK; status, _ = get(t, a, "/api/segment/get/order") { // until what is in memory is used up
	}
	_, port, _ := strings.Cut(a.Addr(), "]:")
	for path, want := range map[string]string{"tags": `"problem":"not_ready"`, "rows": `"code":"not_ready"`} {
		if _, _, body := ask(t, http.MethodGet, "http://127.0.0.1:"+port+"/console/api/"+path, "", nil); !strings.Contains(body, want) || strings.Contains(body, file) {
			t.Errorf("%s: %s, want %s without %s", path, body, want, file)
		}
	}
}
