package accept_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/internal/server/accept"
)

// TestShortage: what passes is waited out with growing pauses, which a connection ends;
// anything else ends Accept.
func TestShortage(t *testing.T) {
	t.Parallel()
	for _, errno := range []syscall.Errno{
		syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.ECONNABORTED, syscall.EINTR, syscall.EPROTO, syscall.ENETDOWN, syscall.EHOSTUNREACH,
	} {
		t.Run(errno.Error(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				p := newPipes()
				l := accept.New(p, accept.Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
				fail := func(times int) (took time.Duration) {
					begin := time.Now()
					accepted := make(chan net.Conn)
					go func() {
						c, err := l.Accept()
						if err != nil {
							t.Error(err)
						}
						accepted <- c
					}()
					for range times {
						p.errs <- &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", errno)}
					}
					p.dial(t)
					(<-accepted).Close()
					return time.Since(begin)
				}
				// 5+10+…+640 ms, then 1 s each.
				if got, want := fail(10), 1275*time.Millisecond+2*time.Second; got != want {
					t.Errorf("10 failures took %v, want %v", got, want)
				}
				if got, want := fail(1), 5*time.Millisecond; got != want {
					t.Errorf("a failure after a success took %v, want %v", got, want)
				}
				if got := strings.Count(log.String(), "level=WARN"); got != 11 || !strings.Contains(log.String(), "retry_in=640ms") {
					t.Errorf("%d warnings: %s", got, log.String())
				}
				go func() { p.errs <- errGone }()
				if c, err := l.Accept(); !errors.Is(err, errGone) || c != nil {
					t.Errorf("Accept = %v, %v", c, err)
				}
				l.Close()
			})
		})
	}
}

// TestCloseEndsAPause: Accept does not sit out a shortage when nobody wants its answer.
func TestCloseEndsAPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		l := accept.New(p, quiet(accept.Config{}))
		accepted := make(chan error, 1)
		go func() {
			_, err := l.Accept()
			accepted <- err
		}()
		for range 9 {
			p.errs <- syscall.EMFILE
		}
		synctest.Wait()
		begin := time.Now()
		if err := errors.Join(l.Close(), l.Close()); err != nil {
			t.Error(err)
		}
		if err := <-accepted; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept = %v", err)
		}
		if got := time.Since(begin); got != 0 {
			t.Errorf("took %v", got)
		}
		if !isClosed(l.Drained()) {
			t.Error("it never served, and is not drained")
		}
	})
}

// lateListener accepts a connection in the moment in which it is closed.
type lateListener struct {
	*pipes
	late    chan net.Conn
	entered chan struct{} // gets a value per Accept
}

func (l lateListener) Accept() (net.Conn, error) {
	l.entered <- struct{}{}
	<-l.closed
	select {
	case c := <-l.late:
		return c, nil
	default:
		return nil, net.ErrClosed
	}
}

// TestAcceptedWhileClosing: such a connection gets no place, and is closed.
func TestAcceptedWhileClosing(t *testing.T) {
	t.Parallel()
	for _, most := range []int{0, 1} {
		ln := lateListener{newPipes(), make(chan net.Conn, 1), make(chan struct{}, 10)}
		here, there := net.Pipe()
		ln.late <- there
		l := accept.New(ln, quiet(accept.Config{MaxConns: most}))
		served := make(chan error, 1)
		go func() { served <- l.Serve(func(*accept.Conn) { t.Error("it was served") }) }()
		<-ln.entered
		l.Drain()
		if err := <-served; err != nil {
			t.Error(err)
		}
		expectEnd(t, here, "")
		if l.Open() != 0 || l.Refused() != 0 || !isClosed(l.Drained()) {
			t.Errorf("%d open, %d refused, drained: %v", l.Open(), l.Refused(), isClosed(l.Drained()))
		}
	}
}

// TestLimit: a place is free again when its connection is closed, once however often it
// is closed and by whomever.
func TestLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		l := accept.New(p, quiet(accept.Config{MaxConns: 2}))
		conns := make(chan net.Conn, 10)
		accepting := make(chan struct{})
		go func() {
			defer close(accepting)
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				conns <- c
			}
		}()
		p.dial(t)
		p.dial(t)
		a := <-conns
		<-conns
		for range 3 {
			expectEnd(t, p.dial(t), "")
		}
		if l.Open() != 2 || l.Refused() != 3 {
			t.Errorf("%d open, %d refused", l.Open(), l.Refused())
		}
		var closing sync.WaitGroup
		for range 3 {
			closing.Go(func() { a.Close() })
		}
		closing.Wait()
		if l.Open() != 1 {
			t.Errorf("%d open after one was closed", l.Open())
		}
		p.dial(t)
		<-conns
		expectEnd(t, p.dial(t), "")
		l.Cut()
		if l.Open() != 0 {
			t.Errorf("%d open after all were cut", l.Open())
		}
		<-accepting
	})
}

// TestRefusal: a refused connection is told why without holding up the next one, for a
// second at most, and only so many at a time.
func TestRefusal(t *testing.T) {
	t.Parallel()
	const most = 64
	var ended atomic.Int64
	cfg := accept.Config{MaxConns: 1, Refuse: func(c net.Conn) {
		defer ended.Add(1)
		if _, err := io.WriteString(c, "full"); err == nil {
			accept.Linger(c, 100)
		}
	}}
	bubble(t, cfg, echo, func(t *testing.T, l *accept.Listener, p *pipes) {
		first := p.dial(t)
		say(t, first, "a")
		expectEnd(t, p.dial(t), "full")
		var silent []net.Conn
		begin := time.Now()
		for range most {
			silent = append(silent, p.dial(t)) // none of them reads
		}
		synctest.Wait()
		expectEnd(t, p.dial(t), "")
		say(t, first, "b")
		if got := time.Since(begin); got != 0 {
			t.Errorf("took %v", got)
		}
		if l.Open() != 1 || l.Refused() != most+2 {
			t.Errorf("%d open, %d refused", l.Open(), l.Refused())
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := ended.Load(); got != most+1 {
			t.Errorf("%d refusals have ended after a second, want %d", got, most+1)
		}
		for _, c := range silent {
			expectEnd(t, c, "")
		}
		expectEnd(t, p.dial(t), "full")
	})
}

// TestLinger: the reply reaches a client that has sent more than was read, over a socket,
// where closing at once would reset the connection.
func TestLinger(t *testing.T) {
	t.Parallel()
	ln := listen(t)
	l := accept.New(ln, quiet(accept.Config{}))
	served := make(chan error, 1)
	go func() {
		served <- l.Serve(func(c *accept.Conn) {
			defer c.Close()
			_, _ = io.ReadFull(c, make([]byte, 1))
			_, _ = io.WriteString(c, "enough")
			accept.Linger(c, 1<<20)
		})
	}()
	for range 20 {
		c := dialTCP(t, l)
		if _, err := c.Write(bytes.Repeat([]byte("x"), 64<<10)); err != nil {
			t.Error(err)
		}
		expectEnd(t, c, "enough")
		c.Close()
	}
	l.Drain()
	<-l.Drained()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	ln, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return ln
}

func dialTCP(t *testing.T, l *accept.Listener) net.Conn {
	t.Helper()
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return c
}
