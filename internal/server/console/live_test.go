package console_test

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/server/console"
)

// lines are those of a stream.
type lines struct {
	s    *site
	resp *http.Response
	scan *bufio.Scanner
}

func (s *site) stream(path string) *lines {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 15*time.Second)
	s.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = resp.Body.Close() })
	return &lines{s, resp, bufio.NewScanner(resp.Body)}
}

// until reads up to a line that begins so.
func (l *lines) until(prefix string) string {
	l.s.t.Helper()
	for l.scan.Scan() {
		if strings.HasPrefix(l.scan.Text(), prefix) {
			return l.scan.Text()
		}
	}
	l.s.t.Fatalf("the stream ended before %q: %v", prefix, l.scan.Err())
	return ""
}

func TestLive(t *testing.T) {
	t.Parallel()
	s := serve(t, &fake{}, "", nil)
	l := s.stream("api/live?view=overview")
	for name, want := range map[string]string{"Content-Type": "text/event-stream", "Cache-Control": "private, no-store", "X-Accel-Buffering": "no"} {
		if got := l.resp.Header.Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	l.until("retry: ")
	first := l.until("data: ")
	if second := l.until("data: "); first == second {
		t.Error("the second event is the first one")
	}
	l.until(": ping")
	for _, path := range []string{"api/live", "api/live?view=cluster", "api/live?view=tags&sort=no"} {
		if status, _, body := s.ask(http.MethodGet, path, ""); status == http.StatusOK && strings.Contains(body, "data: ") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	s.console.Close()
	for l.scan.Scan() { // ends
	}

	quiet := serve(t, &fake{}, "", func(c *console.Config) { c.Live = false })
	if status, _, _ := quiet.ask(http.MethodGet, "api/live?view=overview", ""); status != http.StatusNotImplemented {
		t.Errorf("without streams: %d", status)
	}
}

// stuck is the connection of a reader who takes nothing: a write ends at its deadline.
type stuck struct {
	http.ResponseWriter
	deadline time.Time
}

func (s *stuck) SetWriteDeadline(t time.Time) error { s.deadline = t; return nil }
func (s *stuck) Flush()                             {}
func (s *stuck) Write([]byte) (int, error) {
	time.Sleep(time.Until(s.deadline))
	return 0, os.ErrDeadlineExceeded
}

// TestSlowReaderIsDropped: a reader who takes nothing for the time of a write loses the stream.
func TestSlowReaderIsDropped(t *testing.T) {
	t.Parallel()
	s := serve(t, &fake{}, "", nil)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/console/api/live?view=overview", nil)
		s.console.ServeHTTP(&stuck{ResponseWriter: httptest.NewRecorder()}, r)
	}()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the stream of a reader who takes nothing goes on")
	}
}

// TestStreamsAreBounded: 64 streams, and a place is free again when one ends.
func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	s := serve(t, &fake{}, "", nil)
	var all []*lines
	for range 64 {
		l := s.stream("api/live?view=snowflake")
		l.until("data: ")
		all = append(all, l)
	}
	if status, _, _ := s.ask(http.MethodGet, "api/live?view=snowflake", ""); status != http.StatusServiceUnavailable {
		t.Errorf("the stream number 65: %d", status)
	}
	_ = all[0].resp.Body.Close()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		l := s.stream("api/live?view=snowflake")
		if l.resp.StatusCode == http.StatusOK {
			return
		}
		_ = l.resp.Body.Close()
		if time.Now().After(end) {
			t.Fatal("no place was free again")
		}
	}
}

// TestStreamOutlivesTheTimeoutsOfItsServer: a server bounds the time of a request.
func TestStreamOutlivesTheTimeoutsOfItsServer(t *testing.T) {
	t.Parallel()
	a := node(t, nil) // its administration has 5 s for a head
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	s := &site{t: t, url: consoleOf(a), client: client}
	status, header, _ := s.ask(http.MethodPost, "api/login", `{"token":"`+token+`"}`, own)
	if status != http.StatusOK {
		t.Fatal(status)
	}
	cookie, _, _ := strings.Cut(header.Get("Set-Cookie"), ";")
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"api/live?view=overview", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Cookie", cookie)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	l := &lines{s, resp, bufio.NewScanner(resp.Body)}
	for end := time.Now().Add(6 * time.Second); time.Now().Before(end); {
		l.until("data: ")
	}
}
