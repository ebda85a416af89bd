package app_test

import (
	"encoding/json"
	"net"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
)

// requests returns the lines about requests in a log.
func requests(t *testing.T, log string) (requests []map[string]any) {
	t.Helper()
	for line := range strings.Lines(log) {
		var got map[string]any
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if strings.HasPrefix(got["msg"].(string), "request") {
			requests = append(requests, got)
		}
	}
	return requests
}

// TestAccessLog: with log.access each request has a line, with what was asked for by whom and
// what came of it, and without a secret. Without it there is none.
func TestAccessLog(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{true, false} {
		c := embedded(shortDir(t))
		c.Log.Access, c.Auth.Tokens = on, []string{"s3cret"}
		out := &lockedBuffer{}
		log, _ := app.NewLogger(out, config.Log{Level: "info", Format: "json"})
		a, _ := startWith(t, c, app.Options{Logger: log})
		for _, ask := range []string{
			"GET /api/segment/get/leaf-segment-test HTTP/1.1\r\nHost: leaf\r\nAuthorization: Bearer s3cret\r\nLeaf-Client: shop\r\nX-Request-Id: abc-1\r\n\r\n",
			"GET /api/segment/get/leaf-segment-test?count=5 HTTP/1.1\r\nHost: leaf\r\nAuthorization: Bearer s3cret\r\n\r\n",
			"GET /api/segment/get/none HTTP/1.1\r\nHost: leaf\r\nAuthorization: Bearer s3cret\r\n\r\n",
			"GET /api/snowflake/get/any HTTP/1.1\r\nHost: leaf\r\nAuthorization: Bearer wr0ng\r\nX-Request-Id: abc-4\r\n\r\n",
		} {
			conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", a.Addr())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Write([]byte(ask)); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			_ = conn.Close()
		}
		got := requests(t, out.String())
		if !on {
			if len(got) != 0 {
				t.Errorf("off, and %d lines: %v", len(got), got)
			}
			continue
		}
		if len(got) != 4 {
			t.Fatalf("%d lines: %v", len(got), got)
		}
		for i, want := range []map[string]any{
			{"msg": "request answered", "protocol": "HTTP", "client": "shop", "request": "abc-1", "mode": "segment", "tag": "leaf-segment-test", "count": 1.0, "first": 1.0},
			{"msg": "request answered", "client": "", "count": 5.0, "first": 2.0},
			{"msg": "request failed", "tag": "none", "code": "unknown_tag"},
			{"msg": "request refused", "request": "abc-4", "code": "unauthenticated"},
		} {
			for key, value := range want {
				if got[i][key] != value {
					t.Errorf("line %d: %s is %v, want %v: %v", i, key, got[i][key], value, got[i])
				}
			}
			if id, _ := got[i]["request"].(string); len(id) != 32 && (i == 1 || i == 2) {
				t.Errorf("line %d has no ID of its own: %v", i, got[i])
			}
			if _, timed := got[i]["took"].(string); !timed && i < 3 {
				t.Errorf("line %d has no time: %v", i, got[i])
			}
		}
		if text := out.String(); strings.Contains(text, "s3cret") || strings.Contains(text, "wr0ng") {
			t.Error("a token is in the log")
		}
	}
}

// TestAccessLogIsSwitched: a reload switches the lines on and off, also for a connection that is open.
func TestAccessLogIsSwitched(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	out := &lockedBuffer{}
	log, _ := app.NewLogger(out, config.Log{Level: "info", Format: "json"})
	a, _ := startWith(t, c, app.Options{Logger: log})
	open := map[string]net.Conn{a.Addr(): nil, a.AddrOf("resp"): nil}
	for addr := range open {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		open[addr] = conn
	}
	lines := 0
	for _, on := range []bool{false, true, false, true} {
		c.Log.Access = on
		if _, err := a.Reload(c); err != nil {
			t.Fatal(err)
		}
		for addr, ask := range map[string]string{a.Addr(): "GET /api/segment/get/leaf-segment-test HTTP/1.1\r\nHost: leaf\r\n\r\n", a.AddrOf("resp"): "INCR leaf-segment-test\r\n"} {
			if _, err := open[addr].Write([]byte(ask)); err != nil {
				t.Fatal(err)
			}
			if _, err := open[addr].Read(make([]byte, 4096)); err != nil {
				t.Fatal(err)
			}
			if on {
				lines++
			}
			got := requests(t, out.String())
			if len(got) != lines {
				t.Fatalf("log.access %v: %d lines, want %d: %v", on, len(got), lines, got)
			}
			if on && addr == a.Addr() {
				if id, _ := got[lines-1]["request"].(string); len(id) != 32 {
					t.Errorf("the line has no ID: %v", got[lines-1])
				}
			}
		}
	}
}

// TestAccessLogOfForwardedRequests: the node that forwards a request says which node owns the tag, and that node says that
// another one has forwarded it.
func TestAccessLogOfForwardedRequests(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	var logs [2]lockedBuffer
	var nodes [2]*app.App
	for i := range nodes {
		c := ordered(t, dir)
		c.Log.Access = true
		log, _ := app.NewLogger(&logs[i], config.Log{Level: "info", Format: "json"})
		nodes[i], _ = startWith(t, c, app.Options{Logger: log})
		if i == 0 {
			createStrict(t, nodes[0], "order")
		}
	}
	find := func(i int, key string, want any) (found int) {
		for _, line := range requests(t, logs[i].String()) {
			if line["msg"] == "request answered" && line[key] == want {
				found++
			}
		}
		return found
	}
	until(t, "a request was forwarded", func() bool {
		for _, a := range nodes {
			get(t, a, "/api/segment/get/order")
		}
		for i := range nodes {
			if n := find(i, "owner", nodes[1-i].AddrOf("grpc")); n > 0 {
				return find(1-i, "forwarded", true) >= n
			}
		}
		return false
	})
}
