package httpd_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/httpd"
)

// TestTagsAreExact: what reaches the issuer is the path segment, decoded once.
func TestTagsAreExact(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, segment, tag string
	}{
		{"plain", "order", "order"},
		{"dot", "order.pay", "order.pay"},
		{"trailing dot", "order.", "order."},
		{"dot segment", ".", "."},
		{"two dots", "..", ".."},
		{"encoded dots", "%2E%2e", ".."},
		{"slash", "a%2Fb", "a/b"},
		{"only slashes", "%2F%2F", "//"},
		{"slash and raw characters", "é%2F;é", "é/;é"},
		{"decoded once", "a%2541", "a%41"},
		{"percent", "50%25", "50%"},
		{"plus is a plus", "a+b", "a+b"},
		{"space", "a%20b", "a b"},
		{"question mark", "a%3Fcount=2", "a?count=2"},
		{"sub-delimiters", "!$&'()*+,;=:@", "!$&'()*+,;=:@"},
		{"UTF-8 encoded", "%E8%AE%A2%E5%8D%95", "订单"},
		{"UTF-8 raw", "订单", "订单"},
		{"newline", "a%0D%0Ab", "a\r\nb"},
		{"case", "Order", "Order"},
		{"128 characters", strings.Repeat("x", 128), strings.Repeat("x", 128)},
		{"128 characters of 4 bytes", strings.Repeat("%F0%9F%8D%83", 128), strings.Repeat("🍃", 128)},
		{"129 characters", strings.Repeat("x", 129), ""},
		{"129 characters of 4 bytes", strings.Repeat("%F0%9F%8D%83", 129), ""},
		{"empty", "", ""},
		{"NUL", "a%00", ""},
		{"broken UTF-8", "a%C3", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, path := range paths {
				iss := newIssuer()
				c := dial(t, start(t, quiet(httpd.Config{Access: leaf.Anyone(iss, nil)})))
				c.send(path.get(tt.segment))
				r := c.reply()
				var want []string
				status := http.StatusBadRequest
				if tt.tag != "" {
					status, want = http.StatusOK, []string{tt.tag + " 1"}
				}
				if r.status != status || !slices.Equal(iss.calls, want) {
					t.Errorf("%s: got %v and calls %q, want %d and %q", path.name, r, iss.calls, status, want)
				}
				if status == http.StatusBadRequest && !strings.Contains(r.body, `"code":"bad_request"`) {
					t.Errorf("%s: got %v", path.name, r)
				}
			}
		})
	}
}

// TestBatch: a batch has exactly n IDs in either form, also when it does not fit
// into one write.
func TestBatch(t *testing.T) {
	t.Parallel()
	s := start(t, quiet(httpd.Config{Access: leaf.Anyone(newIssuer(), nil)}))
	for _, n := range []int{1, 2, 1000, leaf.MaxBatch} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			c := dial(t, s)
			target := fmt.Sprintf("GET /api/segment/get/batch%d?count=%d HTTP/1.1\r\nHost: x\r\n", n, n)
			c.send(target + "\r\n")
			text := c.reply()
			c.send(target + "Accept: application/json\r\n\r\n")
			var asJSON struct{ IDs []string }
			if err := json.Unmarshal([]byte(c.reply().body), &asJSON); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(text.body, "\n")
			if len(lines) != n+1 || lines[n] != "" || len(asJSON.IDs) != n {
				t.Fatalf("%d lines and %d strings, want %d", len(lines), len(asJSON.IDs), n)
			}
			for i := range n {
				if lines[i] != fmt.Sprint(i+1) || asJSON.IDs[i] != fmt.Sprint(n+i+1) {
					t.Fatalf("ID %d is %q and %q", i, lines[i], asJSON.IDs[i])
				}
			}
		})
	}
}

// TestBatchIsCutOff: wherever the connection ends, the client notices that a part of a batch is missing. HTTP/1.0, in which
// proxies ask, knows no chunks: a reply without a length lasts there until the connection ends, and
// the part of an ID at its end would be another ID.
func TestBatchIsCutOff(t *testing.T) {
	t.Parallel()
	for path, access := range map[string]leaf.Access{
		"/api/segment/get/order?count=1000":   leaf.Anyone(newIssuer(), nil),
		"/v1/sequence/next/chat/7?count=1000": &echo{},
	} {
		s := start(t, quiet(httpd.Config{Access: access}))
		for _, version := range []string{"HTTP/1.0", "HTTP/1.1"} {
			c := dial(t, s)
			c.send("GET " + path + " " + version + "\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
			whole, err := io.ReadAll(c.r)
			if err != nil {
				t.Fatal(err)
			}
			head := bytes.Index(whole, []byte("\r\n\r\n"))
			for end := head; end <= len(whole); end++ {
				resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(whole[:end])), nil)
				var body []byte
				if err == nil {
					body, err = io.ReadAll(resp.Body)
					resp.Body.Close()
				}
				if (err == nil) != (end == len(whole)) {
					t.Fatalf("%s of %s, %d of %d bytes: %q, %v", version, path, end, len(whole), body[max(0, len(body)-20):], err)
				}
			}
		}
	}
}

func TestAccept(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		accept []string
		json   bool
	}{
		{"none", nil, false},
		{"empty", []string{""}, false},
		{"anything", []string{"*/*"}, false},
		{"json", []string{"application/json"}, true},
		{"json upper case", []string{"Application/JSON"}, true},
		{"json with a parameter", []string{"application/json; charset=utf-8"}, true},
		{"any application", []string{"application/*"}, true},
		{"text", []string{"text/plain"}, false},
		{"equal: text is the default", []string{"application/json, text/plain, */*"}, false},
		{"equal but named more specifically", []string{"application/json, */*"}, true},
		{"lower quality", []string{"application/json;q=0.9, text/plain"}, false},
		{"higher quality", []string{"text/plain;q=0.1, application/json;q=0.2"}, true},
		{"quality with spaces", []string{"text/plain ; q=0.1 , application/json ; Q=0.2"}, true},
		{"refused", []string{"application/json;q=0"}, false},
		{"refused, rest allowed", []string{"application/json;q=0, */*"}, false},
		{"text refused", []string{"text/plain;q=0, */*"}, true},
		{"both refused", []string{"*/*;q=0"}, false},
		{"specific beats general", []string{"application/*;q=0.1, application/json;q=0.8, text/*;q=0.5"}, true},
		{"two fields", []string{"text/plain;q=0.1", "application/json"}, true},
		{"browser", []string{"text/html,application/xhtml+xml,application/xml;q=0.9,image/webp,*/*;q=0.8"}, false},
		{"Java's own client", []string{"text/html, image/gif, image/jpeg, *; q=.2, */*; q=.2"}, false},
		{"neither", []string{"image/png"}, false},
		{"nonsense quality", []string{"application/json;q=high"}, false},
		{"quality out of range", []string{"application/json;q=2"}, false},
		{"not a number", []string{"application/json;q=NaN"}, false},
		{"another json", []string{"application/problem+json"}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := httpd.PrefersJSON(tt.accept); got != tt.json {
				t.Errorf("got %v", got)
			}
		})
	}
}

func FuzzAccept(f *testing.F) {
	f.Add("application/json;q=0.5, */*;q=.1")
	f.Add(";;,q=,")
	f.Fuzz(func(t *testing.T, value string) {
		// Two fields mean the same as one with a comma (RFC 9110, 5.3).
		if httpd.PrefersJSON([]string{value, "text/*"}) != httpd.PrefersJSON([]string{value + ",text/*"}) {
			t.Errorf("%q", value)
		}
	})
}

// FuzzRoute: whatever the target, the server answers, and an issuer is asked for
// valid tags only.
func FuzzRoute(f *testing.F) {
	f.Add("/api/segment/get/a%2Fb", "count=3")
	f.Add("/api/segment/get/..", "")
	f.Add("//x", "a=b&;")
	f.Fuzz(func(t *testing.T, path, query string) {
		u, err := url.ParseRequestURI(path)
		if err != nil || query != "" && len(query) > 100 {
			t.Skip()
		}
		u.RawQuery = query
		iss := newIssuer()
		w := &countingWriter{header: http.Header{}}
		httpd.Handler(quiet(httpd.Config{Access: leaf.Anyone(iss, nil)})).ServeHTTP(w, &http.Request{Method: http.MethodGet, URL: u})
		if w.statuses > 1 || w.statuses == 0 && w.bytes == 0 {
			t.Errorf("%d statuses, %d bytes", w.statuses, w.bytes)
		}
		for _, call := range iss.calls {
			tag := call[:strings.LastIndexByte(call, ' ')]
			if err := leaf.ValidateTag(tag); err != nil {
				t.Error(err)
			}
		}
	})
}

type countingWriter struct {
	header          http.Header
	statuses, bytes int
}

func (w *countingWriter) Header() http.Header { return w.header }
func (w *countingWriter) WriteHeader(int)     { w.statuses++ }
func (w *countingWriter) Write(p []byte) (int, error) {
	w.bytes += len(p)
	return len(p), nil
}
