package httpd_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/httpd"
)

// post is a request for several tags.
func post(body string) string {
	return fmt.Sprintf("POST /v1/next HTTP/1.1\r\nHost: leaf\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}

// TestNext: several tags in one request, answered in its order, each by itself.
func TestNext(t *testing.T) {
	t.Parallel()
	const notFound = `{"type":"urn:leaf:error:unknown_tag","title":"No such tag","status":404,"code":"unknown_tag","detail":"issue tag \"err.unknown_tag\": leaf: unknown tag","retryable":false}`
	const throttled = `{"type":"urn:leaf:error:throttled","title":"Too many requests","status":429,"code":"throttled","detail":"leaf: throttled: 5 IDs/s of tag slow, retry after 1.5s","retryable":true,"retry_after_ms":1500}`
	const internal = `{"type":"urn:leaf:error:internal","title":"Internal error","status":500,"code":"internal","detail":"leaf: internal error, the server's log has the cause","retryable":false}`
	for _, tt := range []struct{ name, body, want string }{
		{"one", `{"requests":[{"tag":"a"}]}`, `{"results":[{"tag":"a","ranges":[{"lo":"1","hi":"2"}]}]}`},
		{"count", `{"requests":[{"tag":"a","count":3}]}`, `{"results":[{"tag":"a","ranges":[{"lo":"1","hi":"4"}]}]}`},
		{"ranges", `{"requests":[{"tag":"gap","count":4}]}`, `{"results":[{"tag":"gap","ranges":[{"lo":"1","hi":"3"},{"lo":"1003","hi":"1005"}]}]}`},
		{"order", `{"requests":[{"tag":"b","count":2},{"tag":"a"},{"tag":"b"}]}`, `{"results":[{"tag":"b","ranges":[{"lo":"1","hi":"3"}]},{"tag":"a","ranges":[{"lo":"1","hi":"2"}]},{"tag":"b","ranges":[{"lo":"3","hi":"4"}]}]}`},
		{"both modes", `{"requests":[{"mode":"segment","tag":"a"},{"mode":"snowflake","count":2},{"mode":"snowflake","tag":"k"}]}`, `{"results":[{"tag":"a","mode":"segment","ranges":[{"lo":"1","hi":"2"}]},{"mode":"snowflake","ranges":[{"lo":"1","hi":"3"}]},{"tag":"k","mode":"snowflake","ranges":[{"lo":"1","hi":"2"}]}]}`},
		{"errors", `{"requests":[{"tag":"err.unknown_tag"},{"tag":"a"},{"tag":"slow"},{"tag":"panic"},{"tag":"b"}]}`, `{"results":[{"tag":"err.unknown_tag","error":` + notFound + `},{"tag":"a","ranges":[{"lo":"1","hi":"2"}]},{"tag":"slow","error":` + throttled + `},{"tag":"panic","error":` + internal + `},{"tag":"b","ranges":[{"lo":"1","hi":"2"}]}]}`},
		{"space and order of members", " {\n\"requests\" : [ {\"count\":2 ,\"tag\":\"a\"} ]\t}\r\n", `{"results":[{"tag":"a","ranges":[{"lo":"1","hi":"3"}]}]}`},
		{"escapes", `{"requests":[{"tag":"\u0061\/\ud83c\udf43\\ud800\ufffd"}]}`, `{"results":[{"tag":"a/🍃\\ud800` + "\ufffd" + `","ranges":[{"lo":"1","hi":"2"}]}]}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := dial(t, start(t, quiet(httpd.Config{Access: leaf.Anyone(newIssuer(), newIssuer())})))
			c.send(post(tt.body))
			r := c.reply()
			if r.status != 200 || r.header.Get("Content-Type") != "application/json" || r.header.Get("Cache-Control") != "private, no-store" {
				t.Errorf("got %v %v", r, r.header)
			}
			if diff := cmp.Diff(tt.want+"\n", r.body); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestNextRefuses: a request that is wrong in any part takes no ID and names the part.
func TestNextRefuses(t *testing.T) {
	t.Parallel()
	entries := func(n int) string {
		return `{"requests":[` + strings.TrimSuffix(strings.Repeat(`{"tag":"a"},`, n), ",") + `]}`
	}
	second := func(entry string) string { return `{"requests":[{"tag":"a"},` + entry + `]}` }
	for _, tt := range []struct{ name, body, want string }{
		{"empty", ``, `must be JSON: unexpected end`},
		{"no JSON", `requests=a`, `must be JSON: invalid character`},
		{"cut off", `{"requests":[{"tag":"a"}`, `must be JSON: unexpected end`},
		{"two values", `{"requests":[{"tag":"a"}]} {}`, `must be JSON: invalid character`},
		{"not UTF-8", "{\"requests\":[{\"tag\":\"\xff\"}]}", `must be valid UTF-8`},
		{"an array", `[{"tag":"a"}]`, `must be an object`},
		{"null", `null`, `must be an object`},
		{"no requests", `{}`, `requests="0 entries": must have 1 to 100`},
		{"none", `{"requests":[]}`, `requests="0 entries": must have 1 to 100`},
		{"null requests", `{"requests":null}`, `requests="null": must be an array`},
		{"requests is an object", `{"requests":{"tag":"a"}}`, `must be an array`},
		{"101 entries", entries(101), `requests="101 entries": must have 1 to 100`},
		{"unknown member", `{"requests":[{"tag":"a"}],"n":1}`, `member="n": is not known`},
		{"other case", `{"Requests":[{"tag":"a"}]}`, `member="Requests": is not known`},
		{"requests twice", `{"requests":[{"tag":"a"}],"requests":[]}`, `"requests": must be given once`},
		{"entry is no object", second(`"b"`), `requests[1]="\"b\"": must be an object`},
		{"unknown member of an entry", second(`{"tag":"b","cuont":2}`), `member="requests[1].cuont": is not known, the known ones are tag, mode, count and format`},
		{"member of an entry in other case", second(`{"Tag":"b"}`), `member="requests[1].Tag"`},
		{"tag twice", second(`{"tag":"b","tag":"b"}`), `requests[1]="tag": must be given once`},
		{"count zero", second(`{"tag":"b","count":0}`), `requests[1].count="0": must be a number from 1 to 100000, in digits`},
		{"count negative", second(`{"tag":"b","count":-1}`), `requests[1].count="-1"`},
		{"count too large", second(`{"tag":"b","count":100001}`), `requests[1].count="100001"`},
		{"count huge", second(`{"tag":"b","count":4294967297}`), `requests[1].count="4294967297"`},
		{"count with a fraction", second(`{"tag":"b","count":1.0}`), `requests[1].count="1.0"`},
		{"count with an exponent", second(`{"tag":"b","count":1e2}`), `requests[1].count="1e2"`},
		{"count is a string", second(`{"tag":"b","count":"2"}`), `requests[1].count="\"2\""`},
		{"count is null", second(`{"tag":"b","count":null}`), `requests[1].count="null"`},
		{"no tag", second(`{"count":2}`), `requests[1]: leaf: bad request: tag=""`},
		{"empty tag", second(`{"tag":""}`), `requests[1]: leaf: bad request: tag=""`},
		{"long tag", second(`{"tag":"` + strings.Repeat("b", 129) + `"}`), `has 129 characters`},
		{"long snowflake key", second(`{"mode":"snowflake","tag":"` + strings.Repeat("b", 129) + `"}`), `has 129 characters`},
		{"tag with NUL", second(`{"tag":"\u0000"}`), `U+0000`},
		{"tag is a number", second(`{"tag":5}`), `requests[1].tag="5": must be a string`},
		{"tag is null", second(`{"tag":null}`), `requests[1].tag="null": must be a string`},
		{"half a pair", second(`{"tag":"\ud83c"}`), `half of a surrogate pair`},
		{"the other half", second(`{"tag":"a\uDF43b"}`), `half of a surrogate pair`},
		{"a pair in the wrong order", second(`{"tag":"\udf43\ud83c"}`), `half of a surrogate pair`},
		{"half a pair before an escape", second(`{"tag":"\ud83c\n\udf43"}`), `half of a surrogate pair`},
		{"half a pair after a pair", second(`{"tag":"\ud83c\udf43\ud83c\u0041"}`), `half of a surrogate pair`},
		{"mode", second(`{"tag":"b","mode":"random"}`), `requests[1].mode="random": must be segment or snowflake`},
		{"empty mode", second(`{"tag":"b","mode":""}`), `requests[1].mode=""`},
		{"too many IDs in all", `{"requests":[{"tag":"a","count":60000},{"tag":"b","count":40001}]}`, `requests="100001 IDs": must ask for at most 100000 in all`},
		{"too long", `{"requests":[{"tag":"a"}]}` + strings.Repeat(" ", 64<<10), `must have at most 65536 bytes`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			iss := newIssuer()
			c := dial(t, start(t, quiet(httpd.Config{Access: leaf.Anyone(iss, iss)})))
			c.send(post(tt.body))
			r := c.reply()
			var e struct{ Code, Detail string }
			if err := json.Unmarshal([]byte(r.body), &e); err != nil {
				t.Fatalf("%v: %v", r, err)
			}
			if r.status != 400 || e.Code != "bad_request" || !strings.Contains(e.Detail, tt.want) {
				t.Errorf("got %v, want 400 and %s", r, tt.want)
			}
			if len(iss.calls) > 0 {
				t.Errorf("the issuer was asked %q", iss.calls)
			}
		})
	}
}

// TestNextBounds: what is just allowed.
func TestNextBounds(t *testing.T) {
	t.Parallel()
	iss := newIssuer()
	c := dial(t, start(t, quiet(httpd.Config{Access: leaf.Anyone(iss, nil)})))
	var body strings.Builder
	for i := range 100 {
		fmt.Fprintf(&body, `,{"mode":"segment","count":1000,"tag":"%s%03d"}`, strings.Repeat("🍃", 125), i)
	}
	c.send(post(`{"requests":[` + body.String()[1:] + `]}`))
	var got struct {
		Results []struct{ Ranges []leaf.Range }
	}
	r := c.reply()
	if err := json.Unmarshal([]byte(r.body), &got); err != nil || r.status != 200 || len(got.Results) != 100 {
		t.Fatalf("got %.200v: %v", r, err)
	}
	for i, one := range got.Results {
		if !slices.Equal(one.Ranges, []leaf.Range{{Lo: 1, Hi: 1001}}) {
			t.Errorf("entry %d: %v", i, one.Ranges)
		}
	}
}

// TestNextDoesNotWaitInTurn: entries of different tags wait side by side, those of one
// tag one after the other, and all of them no longer than a reply may take.
func TestNextDoesNotWaitInTurn(t *testing.T) {
	t.Parallel()
	iss := newIssuer()
	bubble(t, httpd.Config{Access: leaf.Anyone(iss, nil)}, func(t *testing.T, p *pipes) {
		iss.entered, iss.release = make(chan struct{}, 10), make(chan struct{})
		c, begin := p.dial(t), time.Now()
		c.send(post(`{"requests":[{"tag":"block"},{"tag":"a"},{"tag":"block","count":2},{"tag":"b"}]}`))
		<-iss.entered
		synctest.Wait()
		iss.mu.Lock()
		if got := len(iss.calls); got != 3 {
			t.Errorf("%d entries are under way, want 3: %q", got, iss.calls)
		}
		iss.mu.Unlock()
		r := c.reply()
		var got struct {
			Results []struct {
				Ranges []leaf.Range
				Error  *struct{ Code string }
			}
		}
		if err := json.Unmarshal([]byte(r.body), &got); err != nil || len(got.Results) != 4 {
			t.Fatalf("got %v: %v", r, err)
		}
		for i, waits := range []bool{true, false, true, false} {
			switch e := got.Results[i].Error; {
			case waits && (e == nil || e.Code != "not_ready"), !waits && (e != nil || len(got.Results[i].Ranges) != 1):
				t.Errorf("entry %d: %+v", i, got.Results[i])
			}
		}
		if took := time.Since(begin); took != 7500*time.Millisecond {
			t.Errorf("took %v, want three quarters of the time for a reply", took)
		}
	})
}

// TestNextBodies: ways to send a body, and one that does not come.
func TestNextBodies(t *testing.T) {
	t.Parallel()
	const body, reply = `{"requests":[{"tag":"a"}]}`, `{"results":[{"tag":"a","ranges":[{"lo":"1","hi":"2"}]}]}` + "\n"
	for _, tt := range []struct {
		name, request string
		status        int
		body          string
	}{
		{"chunked", "POST /v1/next HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body), 200, reply},
		{"a form's type", strings.Replace(post(body), "Host", "Content-Type: application/x-www-form-urlencoded\r\nHost", 1), 200, reply},
		{"asked for text", strings.Replace(post(body), "Host", "Accept: text/plain\r\nHost", 1), 200, reply},
		{"cut off", "POST /v1/next HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{", 400, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, httpd.Config{}, func(t *testing.T, p *pipes) {
				c := p.dial(t)
				c.send(tt.request)
				if r := c.reply(); r.status != tt.status || tt.body != "" && r.body != tt.body {
					t.Errorf("got %v", r)
				}
			})
		})
	}
	t.Run("expected", func(t *testing.T) {
		t.Parallel()
		bubble(t, httpd.Config{}, func(t *testing.T, p *pipes) {
			c := p.dial(t)
			c.send(fmt.Sprintf("POST /v1/next HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", len(body)))
			line := make([]byte, len("HTTP/1.1 100 Continue\r\n\r\n"))
			if _, err := io.ReadFull(c.r, line); err != nil || string(line) != "HTTP/1.1 100 Continue\r\n\r\n" {
				t.Fatalf("got %q, %v", line, err)
			}
			c.send(body)
			c.expect(200, reply)
		})
	})
}

func TestNextMethods(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t, quiet(httpd.Config{})))
	for _, method := range []string{"GET", "PUT", "OPTIONS"} {
		c.send(method + " /v1/next HTTP/1.1\r\nHost: x\r\n\r\n")
		if r := c.reply(); r.status != http.StatusMethodNotAllowed || r.header.Get("Allow") != "POST" {
			t.Errorf("%s: %v %v", method, r, r.header)
		}
	}
}

// FuzzNext: whatever the body, what is asked for is within the bounds, and says the same
// as encoding/json where that reads it without loss.
func FuzzNext(f *testing.F) {
	f.Add([]byte(`{"requests":[{"tag":"a","count":3},{"mode":"snowflake","count":2}]}`))
	f.Add([]byte(`{"requests":[{"tag":"\ud83c\udf43\\u","count":100000}]}`))
	f.Add([]byte(`{"requests":[{"tag":"\ud800"}]}`))
	f.Add([]byte(`{"requests":[{}],"requests":null}`))
	f.Add([]byte(`{"":[[[]]]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		entries, err := httpd.ParseNext(body)
		if err != nil {
			if !errors.Is(err, leaf.ErrBadRequest) || len(entries) > 0 {
				t.Fatalf("%q, %v", entries, err)
			}
			return
		}
		if len(entries) < 1 || len(entries) > 100 {
			t.Fatalf("%d entries", len(entries))
		}
		var want struct {
			Requests []struct {
				Tag, Mode string
				Count     *int
			}
		}
		if err := json.Unmarshal(body, &want); err != nil {
			t.Fatalf("encoding/json cannot read it: %v", err)
		}
		total := 0
		for i, q := range want.Requests {
			count := 1
			if q.Count != nil {
				count = *q.Count
			}
			mode := "segment"
			if q.Mode != "" {
				mode = q.Mode
			}
			if text := fmt.Sprintf("%s %q %d", mode, q.Tag, count); entries[i] != text {
				t.Errorf("entry %d is %s, want %s", i, entries[i], text)
			}
			if err := leaf.ValidateTag(q.Tag); err != nil && (mode != "snowflake" || q.Tag != "") {
				t.Error(err)
			}
			total += count
		}
		if total > leaf.MaxBatch {
			t.Errorf("%d IDs", total)
		}
	})
}
