package respd_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/respd"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
)

func within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

// serve starts a server on pipes without ending it.
func serve(t *testing.T, cfg respd.Config) (*respd.Server, *pipes, <-chan error) {
	t.Helper()
	p := newPipes()
	s, err := respd.New(p, quiet(cfg))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	return s, p, served
}

// TestShutdownClosesIdleAtOnce: one that never sent anything, one that did, and one
// with half a request.
func TestShutdownClosesIdleAtOnce(t *testing.T) {
	t.Parallel()
	fakeTime(t, func(t *testing.T) {
		s, p, served := serve(t, both())
		silent, used, half := p.dial(t), p.dial(t), p.dial(t)
		used.ask(":1\r\n", "INCR", "order")
		half.send("*2\r\n$4\r\nINC")
		synctest.Wait()

		begin := time.Now()
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		if got := time.Since(begin); got > 10*time.Millisecond {
			t.Errorf("took %v", got)
		}
		for _, c := range []*client{silent, used, half} {
			c.expectEnd()
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Errorf("again: %v", err)
		}
	})
}

// TestShutdownAnswers: requests that were read are answered, also those behind one that
// waits. What comes later is not, and does not destroy the replies.
func TestShutdownAnswers(t *testing.T) {
	t.Parallel()
	iss := newIssuer()
	s, err := respd.New(servertest.Listen(t, "127.0.0.1:0"), quiet(respd.Config{Access: leaf.Anyone(iss, nil)}))
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	c := dial(t, s)
	c.send(request("INCR", "block") + request("INCR", "order"))
	<-iss.entered
	c.send(request("INCR", "late"))
	down := make(chan error, 1)
	go func() { down <- s.Shutdown(context.Background()) }()
	if err := <-served; err != nil {
		t.Error(err)
	}
	var d net.Dialer
	if conn, err := d.DialContext(t.Context(), "tcp", s.Addr().String()); err == nil {
		conn.Close()
		t.Error("the listener still accepts")
	}
	close(iss.release)
	for range 2 {
		if got := c.reply(); got != ":1\r\n" {
			t.Errorf("got %q", got)
		}
	}
	c.expectEnd()
	c.Close()
	if err := <-down; err != nil {
		t.Error(err)
	}
	if want := []string{"block 1", "order 1"}; !slices.Equal(iss.calls, want) {
		t.Errorf("asked for %q, want %q", iss.calls, want)
	}
}

// TestShutdownGivesUp: at its deadline it cancels what still waits, and says so.
func TestShutdownGivesUp(t *testing.T) {
	t.Parallel()
	fakeTime(t, func(t *testing.T) {
		iss := newIssuer()
		s, p, served := serve(t, respd.Config{Access: leaf.Anyone(iss, nil)})
		c := p.dial(t)
		c.send(request("INCR", "block"))
		<-iss.entered
		ctx, cancel := within(3 * time.Second)
		defer cancel()
		err := s.Shutdown(ctx)
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "with 1 connections open") {
			t.Errorf("got %v", err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		synctest.Wait()
	})
}

func TestServeTwiceAndNever(t *testing.T) {
	t.Parallel()
	s := start(t, both())
	dial(t, s).ask("+PONG\r\n", "PING")
	if err := s.Serve(); err == nil {
		t.Error("a second Serve succeeded")
	}
	never, err := respd.New(servertest.Listen(t, "127.0.0.1:0"), both())
	if err != nil {
		t.Fatal(err)
	}
	if err := never.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if err := never.Serve(); err != nil {
		t.Errorf("Serve after Shutdown: %v", err)
	}
}

// TestAcceptErrors: a lack of resources is waited out, another error ends Serve.
func TestAcceptErrors(t *testing.T) {
	t.Parallel()
	fakeTime(t, func(t *testing.T) {
		s, p, served := serve(t, both())
		begin := time.Now()
		for range 10 {
			p.errs <- &net.OpError{Op: "accept", Err: syscall.EMFILE}
		}
		c := p.dial(t)
		c.ask(":1\r\n", "INCR", "order")
		if got := time.Since(begin); got < time.Second || got > 5*time.Second {
			t.Errorf("10 failures took %v, want some back-off", got)
		}
		broken := errors.New("the network is gone")
		p.errs <- broken
		if err := <-served; !errors.Is(err, broken) {
			t.Errorf("Serve returned %v", err)
		}
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		c.expectEnd()
	})
}

// TestPanic: it costs an error reply, and not the requests before and behind it.
func TestPanic(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t, both()))
	for range 3 {
		c.send(request("PING") + request("INCR", "panic") + request("LEAF.NEXT", "panic", "COUNT", "3") + "PING\r\n")
		for _, want := range []string{
			"+PONG\r\n", "-ERR leaf: internal error, the server's log has the cause\r\n",
			"-ERR leaf: internal error, the server's log has the cause\r\n", "+PONG\r\n",
		} {
			if got := c.reply(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
	}
}

// TestHalfClosedClient: one that sends its requests and closes its side gets its
// replies.
func TestHalfClosedClient(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t, both()))
	c.send(strings.Repeat(request("INCR", "order"), 1000))
	if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		if got, want := c.reply(), fmt.Sprintf(":%d\r\n", i+1); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	c.expectEnd()
}

// TestQuitInAPipeline: what stands behind QUIT is neither answered nor carried out, and
// does not destroy the reply.
func TestQuitInAPipeline(t *testing.T) {
	t.Parallel()
	iss := newIssuer()
	s := start(t, quiet(respd.Config{Access: leaf.Anyone(iss, nil)}))
	for range 20 {
		c := dial(t, s)
		c.send("PING\r\nQUIT\r\n" + strings.Repeat(request("INCR", "order"), 1000))
		for _, want := range []string{"+PONG\r\n", "+OK\r\n"} {
			if got := c.reply(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		c.expectEnd()
	}
	if len(iss.calls) > 0 {
		t.Errorf("%d IDs were issued", len(iss.calls))
	}
}

// TestStartStopStress: servers that are stopped under load leave nothing behind
// (TestMain looks for goroutines), never issue an ID twice and never a wrong reply.
func TestStartStopStress(t *testing.T) {
	t.Parallel()
	iss := newIssuer()
	var mu sync.Mutex
	seen := map[string]bool{}
	for round := range 20 {
		s, err := respd.New(servertest.Listen(t, "127.0.0.1:0"), quiet(respd.Config{Access: leaf.Anyone(iss, nil), MaxConns: 6}))
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- s.Serve() }()
		var clients sync.WaitGroup
		some := make(chan struct{}, 1000)
		for n := range 8 {
			clients.Go(func() {
				var d net.Dialer
				for {
					conn, err := d.DialContext(t.Context(), "tcp", s.Addr().String())
					if err != nil {
						return // stopped
					}
					c := newClient(t, conn)
					pipeline := n%3 + 1
					for range 5 {
						if _, err := conn.Write([]byte(strings.Repeat(request("INCR", "order"), pipeline))); err != nil {
							break
						}
						for range pipeline {
							got, err := readReply(c.r)
							if err != nil {
								break
							}
							mu.Lock()
							if got[0] != ':' && got != "-ERR max number of clients reached\r\n" || got[0] == ':' && seen[got] {
								t.Errorf("got %q, seen before: %v", got, seen[got])
							}
							seen[got] = true
							mu.Unlock()
						}
						select {
						case some <- struct{}{}:
						default:
						}
					}
					conn.Close()
				}
			})
		}
		for range 10 * round {
			<-some
		}
		ctx, cancel := within(10 * time.Second)
		var stops sync.WaitGroup
		for range 2 {
			stops.Go(func() {
				if err := s.Shutdown(ctx); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		stops.Wait()
		cancel()
		if err := <-served; err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		clients.Wait()
	}
}
