package httpd_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/idtime"
	"github.com/leaf-idgen/leaf/internal/server/httpd"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
)

// ask returns the reply to a request behind net/http.
func ask(t *testing.T, cfg httpd.Config, method, target string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	httpd.Handler(quiet(cfg)).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, target, nil))
	return w
}

func decodeConfig(dc bool) httpd.Config {
	return httpd.Config{Times: servertest.Times(func(id int64) (idtime.Decoded, error) {
		d := idtime.Decoded{ID: id, Time: time.UnixMilli(1_700_000_000_000).UTC(), UnixMilli: 1_700_000_000_000, Worker: 5, Sequence: id, Layout: "test"}
		if dc {
			d.Datacenter = new(int64(3))
		}
		return d, nil
	})}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	stamp := "1700000000000(" + time.UnixMilli(1_700_000_000_000).Format("2006-01-02 15:04:05.000") + ")"
	cases := []struct {
		name, query string
		dc          bool
		status      int
		want        map[string]string // for an error: code and a part of the detail
	}{
		{name: "as the Java server", query: "snowflakeId=7", status: 200, want: map[string]string{"timestamp": stamp, "workerId": "5", "sequenceId": "7"}},
		{name: "the largest number", query: "snowflakeId=9223372036854775807", status: 200, want: map[string]string{"timestamp": stamp, "workerId": "5", "sequenceId": "9223372036854775807"}},
		{name: "a layout with datacentres", query: "snowflakeId=7", dc: true, status: 200, want: map[string]string{"timestamp": stamp, "datacenterId": "3", "workerId": "5", "sequenceId": "7"}},
		{name: "other parameters are no concern", query: "snowflakeId=7&_=1", status: 200, want: map[string]string{"timestamp": stamp, "workerId": "5", "sequenceId": "7"}},
		{name: "no number", query: "snowflakeId=abc", status: 400, want: map[string]string{"code": "bad_request", "detail": `snowflakeId="abc": must be a decimal number from 0 to 2^63-1`}},
		{name: "too large", query: "snowflakeId=9223372036854775808", status: 400, want: map[string]string{"code": "bad_request", "detail": "from 0 to 2^63-1"}},
		{name: "no ID", query: "snowflakeId=-1", status: 400, want: map[string]string{"code": "bad_request", "detail": `snowflakeId="-1": must be a decimal number from 0 to 2^63-1`}},
		{name: "missing", query: "", status: 400, want: map[string]string{"code": "bad_request", "detail": "must be given once"}},
		{name: "twice", query: "snowflakeId=1&snowflakeId=2", status: 400, want: map[string]string{"code": "bad_request", "detail": "must be given once"}},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := ask(t, decodeConfig(tc.dc), http.MethodGet, "/decodeSnowflakeId?"+tc.query)
			if w.Code != tc.status {
				t.Fatalf("got %d %s, want %d", w.Code, w.Body, tc.status)
			}
			if w.Code != 200 {
				var p struct{ Code, Detail string }
				if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
					t.Fatal(err)
				}
				if p.Code != tc.want["code"] || !strings.Contains(p.Detail, tc.want["detail"]) {
					t.Errorf("got %+v, want %v", p, tc.want)
				}
				return
			}
			var got map[string]string
			if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if w := ask(t, httpd.Config{}, http.MethodGet, "/decodeSnowflakeId?snowflakeId=1"); w.Code != http.StatusNotImplemented {
		t.Errorf("without a layout: got %d, want 501", w.Code)
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	before := time.Now().UnixMilli()
	w := ask(t, httpd.Config{}, http.MethodGet, "/v1/clock")
	var got int64
	if _, err := fmt.Sscanf(w.Body.String(), `{"unix_ms":%d}`, &got); err != nil {
		t.Fatalf("%s: %v", w.Body, err)
	}
	if after := time.Now().UnixMilli(); got < before || got > after {
		t.Errorf("got %d, want %d to %d", got, before, after)
	}
	if cache := w.Header().Get("Cache-Control"); cache != "private, no-store" {
		t.Errorf("Cache-Control: got %q, a stored time would be a lie", cache)
	}
	if w := ask(t, httpd.Config{}, http.MethodPost, "/v1/clock"); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: got %d", w.Code)
	}
}

func TestMetrics(t *testing.T) {
	t.Parallel()
	if w := ask(t, httpd.Config{}, http.MethodGet, "/metrics"); w.Code != http.StatusNotFound {
		t.Errorf("not mounted: got %d, want 404", w.Code)
	}
	cfg := httpd.Config{Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "leaf_up 1") })}
	if w := ask(t, cfg, http.MethodGet, "/metrics"); w.Code != 200 || w.Body.String() != "leaf_up 1\n" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// TestModesAreEqual: what a mode answers depends on its Issuer only, for every form
// of the request.
func TestModesAreEqual(t *testing.T) {
	t.Parallel()
	forms := []struct{ query, accept string }{{"", ""}, {"?count=3", ""}, {"", "application/json"}, {"?count=3", "application/json"}, {"?count=0", ""}, {"?n=1", ""}}
	for _, tag := range []string{"order", "gap", "err.clock", "err.not_ready", "err.exhausted"} {
		for _, form := range forms {
			var replies []string
			for _, mode := range []string{"segment", "snowflake"} {
				w := httptest.NewRecorder()
				r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/"+mode+"/get/"+url.PathEscape(tag)+form.query, nil)
				if form.accept != "" {
					r.Header.Set("Accept", form.accept)
				}
				httpd.Handler(quiet(httpd.Config{Access: leaf.Anyone(newIssuer(), newIssuer())})).ServeHTTP(w, r)
				replies = append(replies, fmt.Sprint(w.Code, w.Header(), w.Body))
			}
			if replies[0] != replies[1] {
				t.Errorf("%s%s %s:\nsegment   %s\nsnowflake %s", tag, form.query, form.accept, replies[0], replies[1])
			}
		}
	}
}
