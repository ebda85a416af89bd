package accept_test

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leaf-idgen/leaf/internal/server/accept"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// quiet is a Config that logs nothing.
func quiet(cfg accept.Config) accept.Config {
	cfg.Logger = slog.New(slog.DiscardHandler)
	return cfg
}

// pipes is a listener whose connections are net.Pipe ends, for tests in a bubble.
type pipes struct {
	conns  chan net.Conn
	errs   chan error // returned by Accept when there is one
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes {
	return &pipes{conns: make(chan net.Conn), errs: make(chan error), closed: make(chan struct{})}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case err := <-p.errs:
		return nil, err
	case <-p.closed:
		return nil, &net.OpError{Op: "accept", Err: net.ErrClosed}
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

func (p *pipes) dial(t *testing.T) net.Conn {
	t.Helper()
	here, there := net.Pipe()
	select {
	case p.conns <- there:
	case <-p.closed:
		t.Fatal("dial: the listener is closed")
	}
	t.Cleanup(func() { here.Close() })
	return here
}

// echo is what the servers of these tests do: they send back what they read until they
// cannot.
func echo(c *accept.Conn) {
	defer c.Close()
	_, _ = io.Copy(c, c)
}

// bubble runs f on a Listener that serves pipes with handle, and ends both.
func bubble(t *testing.T, cfg accept.Config, handle func(*accept.Conn), f func(t *testing.T, l *accept.Listener, p *pipes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		l := accept.New(p, quiet(cfg))
		served := make(chan error, 1)
		go func() { served <- l.Serve(handle) }()
		f(t, l, p)
		l.Cut()
		<-l.Drained()
		if err := <-served; err != nil {
			t.Errorf("Serve = %v", err)
		}
	})
}

// say expects the other end to send text back.
func say(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatalf("send: %v", err)
	}
	got := make([]byte, len(text))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != text {
		t.Errorf("got %q, %v; want %q", got, err, text)
	}
}

// expectEnd expects the other end to close c, after it has sent want.
func expectEnd(t *testing.T, c net.Conn, want string) {
	t.Helper()
	got, err := io.ReadAll(c)
	if err != nil || string(got) != want {
		t.Errorf("got %q, %v; want %q and the end", got, err, want)
	}
}

// lifetime reads until the other end closes c, and returns how long that took.
func lifetime(c net.Conn) time.Duration {
	begin := time.Now()
	_, _ = io.Copy(io.Discard, c)
	return time.Since(begin)
}

// isClosed reports whether ch is.
func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

var errGone = errors.New("the network is gone")
