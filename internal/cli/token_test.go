package cli_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// askWith makes one request with a token.
func askWith(t *testing.T, method, url, token string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
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
	return resp.StatusCode, string(text)
}

// TestNamedTokensOfANode: named tokens in the database and in a file open on each port what
// their roles say. A token that is revoked is refused on a connection that was open before.
func TestNamedTokensOfANode(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"store", "file"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			dir := dataDir(t)
			where := []string{"--auth-named", "store"}
			if place == "file" {
				path := filepath.Join(dir, "tokens")
				if err := os.WriteFile(path, []byte("# of a test\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				where[1] = "file:" + path
			}
			serve(t, dir, append(where, "--admin-addr", "127.0.0.1:0", "--resp-addr", "127.0.0.1:0")...)
			info, err := waitForNode(dir)
			if err != nil {
				t.Fatal(err)
			}
			create := func(args ...string) string {
				return strings.TrimSpace(outputOf(t, append([]string{"token", "create", "--data-dir", dir}, args...)...))
			}
			shop, reader, admin := create("shop", "--role", "issue", "--tags", "leaf-*"), create("grafana", "--role", "read"), create("ops", "--role", "admin")
			outputOf(t, "tag", "create", "order", "--data-dir", dir)
			public, private := "http://"+info.HTTP, "http://"+info.Admin
			for _, c := range []struct {
				name, method, url, token string
				want                     int
				says                     string
			}{
				{"no token", "GET", public + "/api/segment/get/order", "", 401, "asks for a token"},
				{"its tag", "GET", public + "/api/segment/get/leaf-segment-test", shop, 200, ""},
				{"another tag", "GET", public + "/api/segment/get/order", shop, 403, `token shop has not the role issue for tag \"order\"`},
				{"snowflake mode", "GET", public + "/api/snowflake/get/x", shop, 403, "has not the role snowflake"},
				{"rows", "GET", public + "/db", shop, 403, "has not the role read"},
				{"rows for a reader", "GET", public + "/db", reader, 200, ""},
				{"an ID for a reader", "GET", public + "/api/segment/get/order", reader, 403, "has not the role issue"},
				{"an ID for an administrator", "GET", public + "/api/segment/get/order", admin, 403, "has not the role issue"},
				{"a client at administration", "GET", private + "/v1/tags", shop, 403, "has not the role read"},
				{"a reader at administration", "GET", private + "/v1/tags", reader, 200, ""},
				{"a reader changes", "DELETE", private + "/v1/tag?tag=order", reader, 403, "has not the role admin"},
				{"a reader and the audit log", "GET", private + "/v1/audit?limit=1", reader, 403, "has not the role admin"},
				{"a reader and the plan of a repair", "GET", private + "/v1/repair?tag=order", reader, 403, "has not the role admin"},
				{"a reader and the tokens", "GET", private + "/v1/tokens", reader, 403, "has not the role admin"},
				{"a wrong token", "GET", private + "/v1/tags", shop + "x", 401, ""},
				{"an administrator", "DELETE", private + "/v1/tag?tag=order", admin, 200, ""},
			} {
				status, body := askWith(t, c.method, c.url, c.token)
				if status != c.want || !strings.Contains(body, c.says) || c.token != "" && strings.Contains(body, c.token) {
					t.Errorf("%s: %d %s; want %d %q", c.name, status, body, c.want, c.says)
				}
			}
			conn, err := net.Dial("tcp", info.RESP)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
			lines := bufio.NewReader(conn)
			redis := func(command, want string) {
				t.Helper()
				fmt.Fprintf(conn, "%s\r\n", command)
				if line, err := lines.ReadString('\n'); err != nil || !strings.HasPrefix(line, want) {
					t.Errorf("%s: %q, %v; want %q", strings.Fields(command)[0], line, err, want)
				}
			}
			redis("INCR leaf-segment-test", "-NOAUTH")
			redis("AUTH shop wrong", "-WRONGPASS")
			redis("AUTH shop "+shop, "+OK")
			redis("INCR leaf-segment-test", ":")
			redis("INCR order", "-NOPERM")
			if out := outputOf(t, "token", "list", "--data-dir", dir); !strings.Contains(out, "issue:leaf-*") || strings.Contains(out, shop) {
				t.Error(out)
			}
			outputOf(t, "token", "revoke", "shop", "--data-dir", dir)
			redis("INCR leaf-segment-test", "-NOAUTH")
			if status, _ := askWith(t, "GET", public+"/api/segment/get/leaf-segment-test", shop); status != 401 {
				t.Errorf("a revoked token: %d", status)
			}
			out := outputOf(t, "audit", "--data-dir", dir)
			if !strings.Contains(out, "token revoke  token shop") || !strings.Contains(out, "token ops        127.0.0.1:") || strings.Contains(out, shop) || strings.Contains(out, admin) {
				t.Errorf("the audit log:\n%s", out)
			}
		})
	}
}

// TestTokenAsTyped: what is typed wrongly is said.
func TestTokenAsTyped(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	for args, want := range map[string]string{
		"create a":                         "--role",
		"create a --role root":             `role="root": must be issue, issue:PATTERN, snowflake, read or admin`,
		"create a --role read --tags x":    "are for --role issue",
		"create a --role issue --tags a*b": `tags="a*b": must be a tag, or the beginning of tags and *`,
		"create a/b --role read":           `name="a/b": must be 1 to 64 letters`,
		"revoke a":                         `there is no token "a"; see leaf token list`,
	} {
		if code, out := elsewhere(t, []string{"LEAF_DATA_DIR=" + dir}, append([]string{"token"}, strings.Fields(args)...)...); code == 0 || !strings.Contains(out, want) {
			t.Errorf("leaf token %s: %d, %s; want %q", args, code, out, want)
		}
	}
	code, out := elsewhere(t, []string{"LEAF_DATA_DIR=" + dir}, "token", "create", "a", "--role", "read")
	if code != 0 || !strings.Contains(out, "auth.named is not set") || !strings.Contains(out, "\nleaf_") {
		t.Errorf("%d, %s", code, out)
	}
}

// TestGuessingIsSlow: wrong tokens on all ports count together against their address. A token
// that nobody can guess goes through all the same. The alarm begins.
func TestGuessingIsSlow(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	admin := filepath.Join(dir, "admin")
	if err := os.WriteFile(admin, []byte("chosen\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	node := serve(t, dir, "--auth-named", "store", "--admin-token-file", admin, "--admin-addr", "127.0.0.1:0")
	info, err := waitForNode(dir)
	if err != nil {
		t.Fatal(err)
	}
	secret := strings.TrimSpace(outputOf(t, "token", "create", "shop", "--role", "issue", "--data-dir", dir))
	public, private := "http://"+info.HTTP+"/api/segment/get/leaf-segment-test", "http://"+info.Admin+"/v1/info"
	// Each second the address may show one more wrong token, so a slow machine is refused less often.
	began, heard := time.Now(), 0
	refused := func() bool {
		status, body := askWith(t, "GET", []string{public, private}[heard%2], "guess")
		if status == http.StatusUnauthorized {
			heard++
		} else if status != http.StatusTooManyRequests {
			t.Fatalf("%d %s", status, body)
		}
		return status == http.StatusTooManyRequests
	}
	for !refused() {
	}
	if most := 11 + int(time.Since(began).Seconds()); heard > most {
		t.Errorf("%d wrong tokens were heard in %v, want at most %d", heard, time.Since(began), most)
	}
	for {
		status, _ := askWith(t, "GET", private, "chosen")
		if status == http.StatusTooManyRequests {
			break
		}
		if refused() {
			t.Fatalf("a token that can be guessed: %d, although no other one is heard before and after", status)
		}
		for !refused() {
		}
	}
	if status, body := askWith(t, "GET", public, secret); status != 200 {
		t.Errorf("a named token: %d %s", status, body)
	}
	node.await(t, "too many wrong tokens; those of 127.0.0.1/32")
}
