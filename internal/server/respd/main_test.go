package respd_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/respd"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// issuer is a deterministic leaf.Issuer. What it does depends on the tag:
// "err.<code>" fails with that class, "panic" panics, "block" waits for release
// or the context; every other tag counts from 1, a batch of "gap" has a hole in its
// middle, and the first batch of "gap once" too.
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
	ranges, err := i.NextN(ctx, tag, 1)
	if err != nil {
		return 0, err
	}
	return ranges[0].Lo, nil
}

func (i *issuer) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	i.mu.Lock()
	i.calls = append(i.calls, fmt.Sprintf("%s %d", tag, n))
	i.mu.Unlock()
	switch {
	case tag == "panic":
		panic("the issuer is broken")
	case tag == "err.internal":
		return nil, errors.New("the password is 12345")
	case strings.HasPrefix(tag, "err."):
		class, ok := leaf.ClassByCode(strings.TrimPrefix(tag, "err."))
		if !ok {
			panic(tag)
		}
		return nil, fmt.Errorf("issue tag %q\r\n: %w", tag, class.Err)
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
	if n > 1 && (tag == "gap" || tag == "gap once" && lo == 1) {
		half := lo + int64(n)/2
		i.next[tag] += 1000
		return []leaf.Range{{Lo: lo, Hi: half}, {Lo: half + 1000, Hi: lo + int64(n) + 1000}}, nil
	}
	return []leaf.Range{{Lo: lo, Hi: lo + int64(n)}}, nil
}

// gate is an Access that wants a token and notes what it was shown. An empty token lets
// everybody in.
type gate struct {
	token   string
	issuers leaf.Issuers

	mu    sync.Mutex
	shown []leaf.Credentials
}

func (g *gate) Guarded() bool { return g.token != "" }

func (g *gate) Open(c leaf.Credentials) (*leaf.Issuers, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shown = append(g.shown, c)
	if g.token != "" && c.Token != g.token {
		return nil, leaf.ErrUnauthenticated
	}
	return &g.issuers, nil
}

// seen returns what was shown.
func (g *gate) seen() []leaf.Credentials {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.shown)
}

// last returns what was shown last.
func (g *gate) last() leaf.Credentials {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.shown[len(g.shown)-1]
}

// both returns a Config whose two modes are counting issuers, and that logs nothing.
func both() respd.Config {
	return quiet(respd.Config{Access: leaf.Anyone(newIssuer(), newIssuer())})
}

// quiet is a Config that logs nothing.
func quiet(cfg respd.Config) respd.Config {
	cfg.Logger = slog.New(slog.DiscardHandler)
	return cfg
}

// start runs a server on a loopback port until the test ends.
func start(t testing.TB, cfg respd.Config) *respd.Server {
	t.Helper()
	s, err := respd.New(servertest.Listen(t, "127.0.0.1:0"), cfg)
	if err != nil {
		t.Fatal(err)
	}
	run(t, s)
	return s
}

// run serves s until the test ends, and expects both of its ends to be clean.
func run(t testing.TB, s *respd.Server) {
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
func dial(t testing.TB, s *respd.Server) *client {
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
	t testing.TB
	r *bufio.Reader
}

func newClient(t testing.TB, conn net.Conn) *client {
	t.Cleanup(func() { conn.Close() })
	return &client{conn, t, bufio.NewReader(conn)}
}

// request is an array of bulk strings.
func request(words ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	return b.String()
}

func (c *client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

// reply returns the bytes of one reply.
func (c *client) reply() string {
	c.t.Helper()
	text, err := readReply(c.r)
	if err != nil {
		c.t.Fatalf("read a reply: %v after %q", err, text)
	}
	return text
}

// ask sends a request and expects a reply.
func (c *client) ask(want string, words ...string) {
	c.t.Helper()
	c.send(request(words...))
	if got := c.reply(); got != want {
		c.t.Errorf("%q: got %q, want %q", words, got, want)
	}
}

// fails sends a request and expects an error that begins so.
func (c *client) fails(prefix string, words ...string) {
	c.t.Helper()
	c.send(request(words...))
	if got := c.reply(); !strings.HasPrefix(got, "-"+prefix) {
		c.t.Errorf("%q: got %q, want the error %q", words, got, prefix)
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

// readReply reads one reply, strictly, and returns its bytes.
func readReply(r *bufio.Reader) (string, error) { return readNested(r, 0) }

func readNested(r *bufio.Reader, depth int) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return line, err
	}
	if depth > 5 || len(line) < 3 || !strings.HasSuffix(line, "\r\n") || strings.Contains(line[:len(line)-2], "\r") {
		return line, fmt.Errorf("not a line of a reply: %q", line)
	}
	body := line[1 : len(line)-2]
	members := 1
	switch line[0] {
	case '+', '-':
		return line, nil
	case '_':
		if body != "" {
			return line, errors.New("a null with a value")
		}
		return line, nil
	case ':':
		_, err := strconv.ParseInt(body, 10, 64)
		return line, err
	case '$', '=':
		n, err := strconv.Atoi(body)
		if err != nil || n < 0 {
			if body == "-1" && line[0] == '$' {
				return line, nil
			}
			return line, fmt.Errorf("length %q: %w", body, err)
		}
		data := make([]byte, n+2)
		if _, err := io.ReadFull(r, data); err != nil {
			return line, err
		}
		if string(data[n:]) != "\r\n" {
			return line, fmt.Errorf("a string of %d bytes ends in %q", n, data[n:])
		}
		return line + string(data), nil
	case '%':
		members = 2
	case '*', '~':
	default:
		return line, fmt.Errorf("unknown kind %q", line)
	}
	n, err := strconv.Atoi(body)
	if err != nil || n < 0 {
		return line, fmt.Errorf("length %q: %w", body, err)
	}
	var b strings.Builder
	b.WriteString(line)
	for range n * members {
		text, err := readNested(r, depth+1)
		b.WriteString(text)
		if err != nil {
			return b.String(), err
		}
	}
	return b.String(), nil
}

// fakeTime is synctest.Test with an end: in a server's bubble its clock always has
// something to do, so a hang would spin through fake time instead of deadlocking.
func fakeTime(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		hang := time.AfterFunc(100*time.Hour, func() { panic(t.Name() + " hangs: 100 hours of fake time have passed") })
		defer hang.Stop()
		f(t)
	})
}

// bubble runs f with a server on pipes under fake time.
func bubble(t *testing.T, cfg respd.Config, f func(t *testing.T, p *pipes)) {
	t.Helper()
	fakeTime(t, func(t *testing.T) {
		p := newPipes()
		s, err := respd.New(p, quiet(cfg))
		if err != nil {
			t.Fatal(err)
		}
		run(t, s)
		f(t, p)
	})
}

// pipes is a listener whose connections are net.Pipe ends, for tests in a bubble.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
	errs   chan error // returned by Accept when there is one
}

func newPipes() *pipes {
	return &pipes{conns: make(chan net.Conn), closed: make(chan struct{}), errs: make(chan error)}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
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
