package problem_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/problem"
)

var discard = slog.New(slog.DiscardHandler)

// send writes err and returns the reply as a client gets it.
func send(log *slog.Logger, err error) reply {
	rec := httptest.NewRecorder()
	problem.Write(rec, log, err)
	return reply{rec.Code, rec.Header(), rec.Body.String()}
}

type reply struct {
	status int
	header http.Header
	body   string
}

func (r reply) read() error {
	return problem.Read(&http.Response{StatusCode: r.status, Header: r.header, Body: io.NopCloser(strings.NewReader(r.body))})
}

// TestEveryClassSurvivesTheWire: promises 1, 3 and 4, for every row of the table.
func TestEveryClassSurvivesTheWire(t *testing.T) {
	t.Parallel()
	for _, class := range leaf.Classes() {
		t.Run(class.Code, func(t *testing.T) {
			t.Parallel()
			cause := errors.New("disk of node 7 on fire")
			if class.Err != nil {
				cause = fmt.Errorf("reserve tag %q: %w", "ör\"der", class.Err)
			}
			resp := send(discard, cause)

			want := map[string]string{"Content-Type": "application/problem+json", "Cache-Control": "private, no-store"}
			if class.Retryable && (class.HTTP == 503 || class.HTTP == 429) {
				want["Retry-After"] = "1"
			}
			if class.HTTP == 401 {
				want["Www-Authenticate"] = "Bearer"
			}
			got := map[string]string{}
			for k := range resp.header {
				got[k] = resp.header.Get(k)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("header (-want +got):\n%s", diff)
			}
			if resp.status != class.HTTP {
				t.Errorf("status %d, want %d", resp.status, class.HTTP)
			}

			back := resp.read()
			detail := cause.Error()
			if class.Err == nil {
				detail = "leaf: internal error, the server's log has the cause"
			} else if !errors.Is(back, class.Err) {
				t.Errorf("%v does not match %v", back, class.Err)
			}
			if got := leaf.ClassOf(back); got.Code != class.Code {
				t.Errorf("class %q, want %q", got.Code, class.Code)
			}
			e := &problem.Error{
				Type: "urn:leaf:error:" + class.Code, Title: class.Title, Status: class.HTTP,
				Code: class.Code, Detail: detail, Retryable: class.Retryable,
			}
			if diff := cmp.Diff(e, back); diff != "" {
				t.Errorf("problem (-want +got):\n%s", diff)
			}

			// A node that relays it changes nothing.
			if diff := cmp.Diff(e, problem.Of(fmt.Errorf("ask the node: %w", back))); diff != "" {
				t.Errorf("relayed (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRetryHint: a hint survives the wire and a relay, never shortened.
func TestRetryHint(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		hint   time.Duration
		field  string
		member int64
	}{
		{0, "1", 1}, // leaf.Throttled makes it 1 ms
		{time.Millisecond, "1", 1},
		{time.Millisecond + 1, "1", 2},
		{time.Second, "1", 1000},
		{time.Second + 1, "2", 1001},
		{90 * time.Minute, "5400", 5_400_000},
		{24*time.Hour - 500*time.Microsecond, "86400", 86_400_000},
		{math.MaxInt64, "9223372037", 9_223_372_036_855},
	} {
		resp := send(discard, fmt.Errorf("issue tag %q: %w", "order", leaf.Throttled("5 IDs/s of tag order", tt.hint)))
		if got := resp.header.Get("Retry-After"); resp.status != 429 || got != tt.field || !strings.HasSuffix(resp.body, fmt.Sprintf(`,"retry_after_ms":%d}`, tt.member)) {
			t.Errorf("%v: got %d, Retry-After %q, %s", tt.hint, resp.status, got, resp.body)
		}
		back := fmt.Errorf("ask the node: %w", resp.read())
		if got, want := leaf.RetryAfter(back), time.Duration(tt.member)*time.Millisecond; got != want && got != longest {
			t.Errorf("%v: a client reads %v, want %v", tt.hint, got, want)
		}
		if relayed := send(discard, back); tt.hint < longest && relayed.body != resp.body {
			t.Errorf("%v: relayed %s", tt.hint, relayed.body)
		}
	}
}

// longest is the longest hint that a client believes.
const longest = 10 * 365 * 24 * time.Hour

// TestHintOfAnotherCode: what a retry cannot help is not told when to come again, and
// nonsense is no hint.
func TestHintOfAnotherCode(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]time.Duration{
		`{"code":"throttled","detail":"d","retry_after_ms":250}`:                 250 * time.Millisecond,
		`{"code":"throttled","detail":"d"}`:                                      0,
		`{"code":"throttled","detail":"d","retry_after_ms":-5}`:                  0,
		`{"code":"throttled","detail":"d","retry_after_ms":9223372036854775807}`: longest,
		`{"code":"exhausted","detail":"d","retry_after_ms":250}`:                 250 * time.Millisecond,
		`{"code":"blocked","detail":"d","retry_after_ms":250}`:                   0,
		`{"code":"later","detail":"d","retry_after_ms":250}`:                     0,
	} {
		err := reply{429, http.Header{"Content-Type": {problem.ContentType}}, body}.read()
		if got := leaf.RetryAfter(err); got != want || err.Error() != "d" {
			t.Errorf("%s: %v, %v; want %v", body, err, got, want)
		}
	}
}

func TestInternalCauseIsLoggedNotSent(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	resp := send(slog.New(slog.NewTextHandler(&log, nil)), errors.New("password is 12345"))
	if strings.Contains(resp.body, "12345") {
		t.Errorf("the reply leaks the cause: %s", resp.body)
	}
	if !strings.Contains(log.String(), "12345") || !strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("the log lacks the cause: %s", log.String())
	}

	log.Reset()
	send(slog.New(slog.NewTextHandler(&log, nil)), leaf.ErrUnknownTag)
	if log.Len() > 0 {
		t.Errorf("a caller's error was logged: %s", log.String())
	}
}

func TestBodyMembers(t *testing.T) {
	t.Parallel()
	got := string(problem.Of(leaf.ErrNotReady).Body())
	want := `{"type":"urn:leaf:error:not_ready","title":"Not ready, retry","status":503,"code":"not_ready","detail":"leaf: not ready","retryable":true}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestProblemsOfHTTP(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 500)
	for _, tt := range []struct {
		name       string
		problem    *problem.Error
		status     int
		code       string
		detail     string
		allow      string
		retryAfter string
	}{
		{"not found", problem.NotFound("/a\r\nb"), 404, "not_found", `leaf: no route "/a\r\nb"`, "", ""},
		{"not found long", problem.NotFound(long), 404, "not_found", `leaf: no route "` + long[:64] + `..."`, "", ""},
		{"method", problem.MethodNotAllowed("PUT", "GET", "HEAD"), 405, "method_not_allowed", `leaf: method "PUT" is not allowed, use GET or HEAD`, "GET, HEAD", ""},
		{"connections", problem.TooManyConnections(7), 503, "too_many_connections", "leaf: all 7 connections are in use", "", "1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			resp := send(discard, tt.problem)
			if resp.status != tt.status || resp.header.Get("Allow") != tt.allow || resp.header.Get("Retry-After") != tt.retryAfter {
				t.Errorf("got %d %v", resp.status, resp.header)
			}
			back := resp.read()
			e, ok := errors.AsType[*problem.Error](back)
			if !ok || e.Code != tt.code || e.Detail != tt.detail {
				t.Errorf("got %#v", back)
			}
			if c := leaf.ClassOf(back); c.Err != nil {
				t.Errorf("matches the sentinel %v", c.Err)
			}
		})
	}
}

func TestReadWhatIsNoProblem(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		contentType string
		body        string
		want        string
	}{
		{"proxy page", "text/html", "<h1>Bad gateway</h1>\n", `HTTP status 502: "<h1>Bad gateway</h1>"`},
		{"empty", "", "", `HTTP status 502: ""`},
		{"broken JSON", "application/problem+json", `{"code":`, `HTTP status 502: "{\"code\":"`},
		{"wrong types", "application/problem+json", `{"code":5}`, `HTTP status 502: "{\"code\":5}"`},
		{"no code", "application/problem+json", `{"title":"x"}`, `HTTP status 502: "{\"title\":\"x\"}"`},
		{"unknown code", "application/problem+json; charset=utf-8", `{"code":"later","detail":"of a newer server"}`, `of a newer server`},
		{"no detail", "application/problem+json", `{"code":"later","title":"Later"}`, `Later`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := problem.Read(&http.Response{
				StatusCode: http.StatusBadGateway,
				Header:     http.Header{"Content-Type": {tt.contentType}},
				Body:       io.NopCloser(strings.NewReader(tt.body)),
			})
			if err == nil || err.Error() != tt.want {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			if c := leaf.ClassOf(err); c.Err != nil {
				t.Errorf("matches the sentinel %v", c.Err)
			}
		})
	}
}

func TestReadBoundsTheBody(t *testing.T) {
	t.Parallel()
	endless := io.NopCloser(io.LimitReader(zeros{}, 1<<40))
	if err := problem.Read(&http.Response{StatusCode: http.StatusInternalServerError, Body: endless}); err == nil {
		t.Error("no error")
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func FuzzRead(f *testing.F) {
	f.Add(503, "application/problem+json", `{"code":"not_ready","detail":"d","retryable":true}`)
	f.Add(429, "application/problem+json", `{"code":"throttled","retry_after_ms":9223372036854775807}`)
	f.Add(404, "application/problem+json", `{"code":"unknown_tag","status":200}`)
	f.Add(200, "text/plain; =", "1")
	f.Fuzz(func(t *testing.T, status int, contentType, body string) {
		err := problem.Read(&http.Response{
			StatusCode: status,
			Header:     http.Header{"Content-Type": {contentType}},
			Body:       io.NopCloser(strings.NewReader(body)),
		})
		e, ok := errors.AsType[*problem.Error](err)
		if !ok || e.Status != status || e.Error() == "" && e.Title != "" {
			t.Fatalf("got %#v", err)
		}
		if !json.Valid(e.Body()) {
			t.Fatalf("cannot be passed on: %s", e.Body())
		}
		if leaf.RetryAfter(err) < 0 || e.RetryAfter() < 0 {
			t.Fatalf("a hint into the past: %v, %d", leaf.RetryAfter(err), e.RetryAfter())
		}
	})
}
