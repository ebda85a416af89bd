package httpd_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/httpd"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// issuer is a deterministic leaf.Issuer. What it does depends on the tag:
// "err.<code>" fails with that class, "slow" is throttled for 1.5 s, "panic" panics, "block" waits for release
// or the context, "cancelled" fails like a context; every other tag counts from 1,
// and a batch of "gap" has a hole in its middle.
type issuer struct {
	mu      sync.Mutex
	next    map[string]int64
	calls   []string
	entered chan struct{} // gets one value per call that blocks
	release chan struct{}
}

func newIssuer() *issuer {
	return &issuer{next: map[string]int64{}, entered: make(chan struct{}, 100), release: make(chan struct{})}
}

func (i *issuer) Next(ctx context.Context, tag string) (int64, error) {
	ranges, err := i.take(ctx, tag, 1)
	if err != nil {
		return 0, err
	}
	return ranges[0].Lo, nil
}

func (i *issuer) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	return i.take(ctx, tag, n)
}

func (i *issuer) take(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	i.mu.Lock()
	i.calls = append(i.calls, fmt.Sprintf("%s %d", tag, n))
	i.mu.Unlock()
	switch {
	case tag == "panic":
		panic("the issuer is broken")
	case tag == "cancelled":
		return nil, fmt.Errorf("issue tag %q: %w", tag, context.Canceled)
	case tag == "slow":
		return nil, leaf.Throttled("5 IDs/s of tag slow", 1500*time.Millisecond)
	case tag == "err.internal":
		return nil, errors.New("the password is 12345")
	case strings.HasPrefix(tag, "err."):
		class, ok := leaf.ClassByCode(strings.TrimPrefix(tag, "err."))
		if !ok {
			panic(tag)
		}
		return nil, fmt.Errorf("issue tag %q: %w", tag, class.Err)
	case tag == "block":
		if err := leaf.Admit(ctx); err != nil {
			return nil, err
		}
		i.entered <- struct{}{}
		select {
		case <-i.release:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	lo := i.next[tag] + 1
	i.next[tag] += int64(n)
	if tag == "gap" && n > 1 {
		half := lo + int64(n)/2
		i.next[tag] += 1000
		return []leaf.Range{{Lo: lo, Hi: half}, {Lo: half + 1000, Hi: lo + int64(n) + 1000}}, nil
	}
	return []leaf.Range{{Lo: lo, Hi: lo + int64(n)}}, nil
}

// door is an Access that refuses the token "wrong", panics at "panic", and otherwise
// notes with every call who made it, if it shows anything.
type door struct{ *issuer }

func (door) Guarded() bool { return false }

func (d door) Open(c leaf.Credentials) (*leaf.Issuers, error) {
	switch c.Token {
	case "wrong":
		return nil, fmt.Errorf("%w: the token is not the one", leaf.ErrUnauthenticated)
	case "panic":
		panic("the door is broken")
	}
	c.Request = "" // of the first request only
	return &leaf.Issuers{Segment: visitor{d.issuer, c}, Snowflake: leaf.Disabled("snowflake")}, nil
}

type visitor struct {
	*issuer
	who leaf.Credentials
}

func (v visitor) Next(ctx context.Context, tag string) (int64, error) {
	v.note()
	return v.issuer.Next(ctx, tag)
}

func (v visitor) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	v.note()
	return v.issuer.NextN(ctx, tag, n)
}

func (v visitor) note() {
	if v.who == (leaf.Credentials{}) {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.calls = append(v.calls, fmt.Sprintf("%q %q %q", v.who.Token, v.who.Name, v.who.Certificate))
}

// quiet is a Config that logs nothing.
func quiet(cfg httpd.Config) httpd.Config {
	cfg.Logger = slog.New(slog.DiscardHandler)
	return cfg
}

// start runs a server on a loopback port until the test ends.
func start(t testing.TB, cfg httpd.Config) *httpd.Server {
	t.Helper()
	s, err := httpd.New(servertest.Listen(t, "127.0.0.1:0"), cfg)
	if err != nil {
		t.Fatal(err)
	}
	run(t, s)
	return s
}

// run serves s until the test ends, and expects both of its ends to be clean.
func run(t testing.TB, s *httpd.Server) {
	t.Helper()
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
}

// dial connects to s. The connection has a deadline, so that a reply that never
// comes fails the test.
func dial(t *testing.T, s *httpd.Server) *client {
	t.Helper()
	var d net.Dialer
	conn, err := d.DialContext(t.Context(), s.Addr().Network(), s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return newClient(t, conn)
}

// client is the raw end of a connection.
type client struct {
	net.Conn
	t *testing.T
	r *bufio.Reader
}

func newClient(t *testing.T, conn net.Conn) *client {
	t.Cleanup(func() { conn.Close() })
	return &client{conn, t, bufio.NewReader(conn)}
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

// reply reads one reply with its body.
func (c *client) reply() reply {
	c.t.Helper()
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		c.t.Fatalf("read a reply: %v", err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatalf("read a body: %v", err)
	}
	return reply{resp.StatusCode, resp.Close, string(body), resp.Header}
}

type reply struct {
	status int
	close  bool
	body   string
	header http.Header
}

func (r reply) String() string { return fmt.Sprintf("%d close=%v %s", r.status, r.close, r.body) }

// ask sends text and expects 200 and body.
func (c *client) ask(text, body string) {
	c.t.Helper()
	c.send(text)
	c.expect(http.StatusOK, body)
}

func (c *client) expect(status int, body string) {
	c.t.Helper()
	if r := c.reply(); r.status != status || r.body != body {
		c.t.Errorf("got %v, want %d %s", r, status, body)
	}
}

// expectEnd expects the server to close the connection properly and without
// another byte.
func (c *client) expectEnd() {
	c.t.Helper()
	b, err := io.ReadAll(c.r)
	if len(b) > 0 {
		c.t.Errorf("got %q, want the end of the connection", b)
	}
	if err != nil { // a deadline, because it stays open, or a reset
		c.t.Errorf("the connection does not end: %v", err)
	}
}

// rest half-closes the connection and returns everything the server still sends.
func (c *client) rest() string {
	c.t.Helper()
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		c.t.Fatal(err)
	}
	b, err := io.ReadAll(c.r)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(b)
}

// fastGET is a request that the fast path answers, slowGET the same one with a
// field that it does not know.
func fastGET(tag string) string {
	return "GET /api/segment/get/" + tag + " HTTP/1.1\r\nHost: leaf\r\n\r\n"
}

func slowGET(tag string) string {
	return "GET /api/segment/get/" + tag + " HTTP/1.1\r\nHost: leaf\r\nX-Slow: 1\r\n\r\n"
}

// paths names the two ways through the server.
var paths = []struct {
	name string
	get  func(tag string) string
}{{"fast", fastGET}, {"net/http", slowGET}}

var dateField = regexp.MustCompile(`(?m)^Date: \w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT\r$`)

// withoutDate replaces the value of Date, which must be well formed.
func withoutDate(s string) string { return dateField.ReplaceAllString(s, "Date: *\r") }

// fakeTime is synctest.Test with an end: in a server's bubble its clock always has
// something to do, so a hang would spin through fake time instead of deadlocking.
func fakeTime(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		hang := time.AfterFunc(time.Hour, func() { panic(t.Name() + " hangs: an hour of fake time has passed") })
		defer hang.Stop()
		f(t)
	})
}

// pipes is a listener whose connections are net.Pipe ends, for tests in a bubble.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	errs   chan error // returned by Accept when there is one
	taken  atomic.Int64
}

func newPipes() *pipes {
	return &pipes{conns: make(chan net.Conn), closed: make(chan struct{}), errs: make(chan error)}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		p.taken.Add(1)
		return c, nil
	case err := <-p.errs:
		return nil, err
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

func (p *pipes) dial(t *testing.T) *client {
	t.Helper()
	here, there := net.Pipe()
	select {
	case p.conns <- there:
	case <-p.closed:
		t.Fatal("dial: the listener is closed")
	}
	return newClient(t, here)
}

// madeID is the ID that an internal error gets where the request brings none.
var madeID = regexp.MustCompile(`(?m)^X-Request-Id: [0-9a-f]{32}\r$`)

// broughtTrace is an ID that requests of these tests bring.
const broughtTrace = "4bf92f3577b34da6a3ce929d0e0e4736"

// withoutMadeID replaces IDs that a server made.
func withoutMadeID(s string) string {
	return madeID.ReplaceAllStringFunc(s, func(line string) string {
		if strings.Contains(line, broughtTrace) {
			return line
		}
		return "X-Request-Id: *\r"
	})
}
