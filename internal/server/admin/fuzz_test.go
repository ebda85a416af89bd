package admin_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/server/admin"
	"github.com/leaf-idgen/leaf/internal/server/problem"
)

// words are those of a tag in a request.
const words = " tag start step description min_step max_step fixed_step max_id rate quota blocked "

// FuzzRequest: whatever arrives at the socket, the answer is JSON, and a change reaches
// the node only out of one JSON value without a word that it does not know.
func FuzzRequest(f *testing.F) {
	for _, r := range [][3]string{
		{"POST", "/v1/tag", `{"tag":"a","start":"1","step":10}`},
		{"POST", "/v1/tag", `{"tag":"a","start":1}`},
		{"POST", "/v1/tag", `{"tag":"a"} {}`},
		{"POST", "/v1/tag", `{"name":"a"}`},
		{"POST", "/v1/tag", "null"},
		{"POST", "/v1/tag", ""},
		{"PATCH", "/v1/tag?tag=a", `{"max_id":"5","step":1}`},
		{"PATCH", "/v1/tag?tag=a", "[]"},
		{"PATCH", "/v1/limit/tag?tag=a", `{"rate":"5","quota":"6","blocked":true}`},
		{"PATCH", "/v1/limit/client?client=", `{"rate":5}`},
		{"PATCH", "/v1/limit/client", `{}`},
		{"POST", "/v1/repair?tag=a", `{"above":"7"}`},
		{"POST", "/v1/repair?tag=%00", `{"above":"-7"}`},
		{"POST", "/v1/next?tag=a&n=5", ""},
		{"POST", "/v1/next?tag=a&n=0", ""},
		{"POST", "/v1/next-snowflake?n=100001", ""},
		{"POST", "/v1/worker/release?worker=07", ""},
		{"POST", "/v1/worker/release?worker=-1", ""},
		{"GET", "/v1/nodes", ""},
		{"POST", "/v1/node/weight?weight=7", ""},
		{"POST", "/v1/node/weight?weight=1e9", ""},
		{"GET", "/v1/tags", ""},
		{"GET", "//v1/../v1/info", ""},
		{"DELETE", "/v1/tag?tag=a", ""},
		{"BREW", "/v1/tag", ""},
		{"GET", "/", ""},
	} {
		f.Add(r[0], r[1], r[2])
	}
	b := &mirror{}
	s := admin.NewServer(b, admin.Config{Logger: slog.New(slog.DiscardHandler)})
	client := overPipe(f, s)
	f.Fuzz(func(t *testing.T, method, target, body string) {
		u, err := url.ParseRequestURI(target)
		if err != nil || u.IsAbs() || u.Host != "" {
			t.Skip()
		}
		u.Scheme, u.Host = "http", "leaf"
		req, err := http.NewRequestWithContext(t.Context(), method, u.String(), strings.NewReader(body))
		if err != nil {
			t.Skip()
		}
		b.set(nil)
		resp, err := client.Do(req)
		if err != nil {
			t.Skip() // net/http itself does not send or take it
		}
		defer resp.Body.Close()
		reply, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode >= 300 && resp.StatusCode < 400 || method == http.MethodHead || method == http.MethodOptions || resp.StatusCode == http.StatusMethodNotAllowed {
			return // the router's
		}
		if !json.Valid(reply) {
			t.Fatalf("%s %s %q: %d %q", method, target, body, resp.StatusCode, reply)
		}
		if failed := resp.StatusCode != http.StatusOK; failed && b.last() != nil {
			t.Errorf("%s %s %q: %d, and the node was told %v", method, target, body, resp.StatusCode, b.last())
		}
		switch q := b.last().(type) {
		case manage.CreateTag, manage.SetTag, manage.SetTagLimit, manage.SetClientLimit:
			var fields map[string]any
			if err := json.Unmarshal([]byte(body), &fields); err != nil {
				t.Errorf("%q is read as %+v, %v", body, q, err)
			}
			for field := range fields {
				if !strings.Contains(words, " "+strings.ToLower(field)+" ") {
					t.Errorf("the word %q of %q is passed over", field, body)
				}
			}
		case manage.Next:
			checkCount(t, target, q.N)
		case manage.NextSnowflake:
			checkCount(t, target, q.N)
		}
	})
}

func checkCount(t *testing.T, target string, n int) {
	t.Helper()
	if n < 1 || n > leaf.MaxBatch {
		t.Errorf("%s asks the node for %d IDs", target, n)
	}
}

// overPipe serves s in memory, and returns a client that follows no redirect.
func overPipe(f *testing.F, s *admin.Server) *http.Client {
	f.Helper()
	ln := &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
	served := make(chan error, 1)
	go func() { served <- s.Serve(ln) }()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		near, far := net.Pipe()
		select {
		case ln.conns <- far:
			return near, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	f.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := errors.Join(s.Stop(context.Background()), <-served); err != nil {
			f.Error(err)
		}
	})
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	close(l.done)
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// FuzzReply: a command takes what a node answers for what it says, or for an error that
// it can name; it never panics and never makes up an ID.
func FuzzReply(f *testing.F) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
	for _, reply := range []string{
		ok + `{"ranges":[{"lo":1,"hi":3}]}`, ok + `{"ranges":null}`, ok + `{"ranges":[{"lo":3,"hi":1}]}`, ok + "null", ok, ok + `[]`,
		"HTTP/1.1 503 x\r\nContent-Type: application/problem+json\r\n\r\n" + `{"code":"not_ready","detail":"d","retryable":true}`,
		"HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", "", "x",
	} {
		f.Add([]byte(reply))
	}
	dir := shortDir(f)
	ln, err := admin.Listen(f.Context(), dir)
	if err != nil {
		f.Fatal(err)
	}
	var current atomic.Pointer[[]byte]
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Read(make([]byte, 4096)) // the whole head, which is short
			_, _ = conn.Write(*current.Load())   // also where a redirect leads to
			_ = conn.Close()
		}
	}()
	f.Cleanup(func() {
		if err := ln.Close(); err != nil {
			f.Error(err)
		}
		<-ended
	})
	f.Fuzz(func(t *testing.T, reply []byte) {
		c := admin.NewClient(dir)
		defer c.Close()
		current.Store(&reply)
		issued, err := manage.Ask(t.Context(), c, manage.Next{Tag: "order", N: 2})
		if err != nil {
			_, isProblem := errors.AsType[*problem.Error](err)
			if !isProblem && !errors.Is(err, leaf.ErrNotReady) {
				t.Errorf("%q: %v", reply, err)
			}
			return
		}
		var said struct {
			Ranges []leaf.Range `json:"ranges"`
		}
		_, body, _ := strings.Cut(string(reply), "\r\n\r\n")
		if n := count(issued.Ranges); n > 0 && json.NewDecoder(strings.NewReader(body)).Decode(&said) == nil && n != count(said.Ranges) {
			t.Errorf("%q is read as %v", reply, issued)
		}
	})
}

func count(ranges []leaf.Range) (n int64) {
	for _, r := range ranges {
		n += r.Len()
	}
	return n
}
