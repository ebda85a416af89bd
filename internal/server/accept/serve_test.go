package accept_test

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf/internal/server/accept"
)

// TestDrain: connections that wait for their clients are interrupted at once, one that
// was spared is not, and Drained waits for both handlers.
func TestDrain(t *testing.T) {
	t.Parallel()
	spare := make(chan struct{})
	interrupted := make(chan error, 10)
	bubble(t, accept.Config{}, func(c *accept.Conn) {
		defer c.Close()
		b := make([]byte, 1)
		if _, err := io.ReadFull(c, b); err != nil {
			interrupted <- err
			return
		}
		c.Spare()
		close(spare)
		_, _ = io.ReadFull(c, b)
	}, func(t *testing.T, l *accept.Listener, p *pipes) {
		waits, spared := p.dial(t), p.dial(t)
		_, _ = io.WriteString(spared, "s")
		<-spare
		synctest.Wait()
		begin := time.Now()
		l.Drain()
		if !l.Closed() {
			t.Error("not closed")
		}
		expectEnd(t, waits, "")
		if err := <-interrupted; !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("the reader got %v", err)
		}
		synctest.Wait()
		if isClosed(l.Drained()) || l.Open() != 1 {
			t.Errorf("drained with %d open", l.Open())
		}
		l.Drain()
		_, _ = io.WriteString(spared, "t")
		<-l.Drained()
		expectEnd(t, spared, "")
		if got := time.Since(begin); got != 0 {
			t.Errorf("took %v", got)
		}
	})
}

// TestDrainSeesRefusals: one that is being refused does not hold Drain up.
func TestDrainSeesRefusals(t *testing.T) {
	t.Parallel()
	cfg := accept.Config{MaxConns: 1, Refuse: func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }}
	bubble(t, cfg, echo, func(t *testing.T, l *accept.Listener, p *pipes) {
		say(t, p.dial(t), "a")
		refused := p.dial(t)
		synctest.Wait()
		begin := time.Now()
		l.Drain()
		expectEnd(t, refused, "")
		<-l.Drained()
		if got := time.Since(begin); got != 0 {
			t.Errorf("took %v", got)
		}
	})
}

// TestDrainRace: a connection that is accepted while the listener closes is either served
// and interrupted, or closed. Never is it forgotten, and never does a handler run after
// Drained.
func TestDrainRace(t *testing.T) {
	t.Parallel()
	for range 300 {
		synctest.Test(t, func(t *testing.T) {
			p := newPipes()
			l := accept.New(p, quiet(accept.Config{MaxConns: 2, Refuse: func(net.Conn) {}}))
			var late atomic.Bool
			served := make(chan error, 1)
			go func() {
				served <- l.Serve(func(c *accept.Conn) {
					late.Store(late.Load() || isClosed(l.Drained()))
					echo(c)
				})
			}()
			var clients sync.WaitGroup
			for range 4 {
				clients.Go(func() {
					here, there := net.Pipe()
					select {
					case p.conns <- there:
						lifetime(here) // hangs, and so fails the bubble, if nobody closes it
					case <-p.closed:
					}
				})
			}
			l.Drain()
			<-l.Drained()
			if err := <-served; err != nil || late.Load() {
				t.Errorf("Serve = %v, a handler ran late: %v", err, late.Load())
			}
			clients.Wait()
			if l.Open() != 0 {
				t.Errorf("%d open", l.Open())
			}
		})
	}
}

// TestCut: it closes everything, refusals and connections that were spared included.
func TestCut(t *testing.T) {
	t.Parallel()
	cfg := accept.Config{MaxConns: 1, Refuse: func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }}
	bubble(t, cfg, func(c *accept.Conn) {
		c.Spare()
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
	}, func(t *testing.T, l *accept.Listener, p *pipes) {
		open, refused := p.dial(t), p.dial(t)
		synctest.Wait()
		begin := time.Now()
		l.Cut()
		expectEnd(t, open, "")
		expectEnd(t, refused, "")
		if got := time.Since(begin); got != 0 {
			t.Errorf("took %v", got)
		}
	})
}

// TestCloseIf: only those that the condition names.
func TestCloseIf(t *testing.T) {
	t.Parallel()
	bubble(t, accept.Config{}, echo, func(t *testing.T, l *accept.Listener, p *pipes) {
		silent, talks := p.dial(t), p.dial(t)
		say(t, talks, "hello")
		l.CloseIf(func(c *accept.Conn) bool { return c.Heard() < 5 })
		expectEnd(t, silent, "")
		for range 100 {
			say(t, talks, "hello")
		}
		l.CloseIf(func(c *accept.Conn) bool { return c.Heard() < 64 })
		say(t, talks, "still there")
	})
}

// TestServe: it can be called once, and after Close does nothing.
func TestServe(t *testing.T) {
	t.Parallel()
	l := accept.New(newPipes(), quiet(accept.Config{}))
	beside := make(chan struct{})
	served := make(chan error, 1)
	go func() {
		served <- l.Serve(echo, func() { accept.Every(time.Millisecond, l.Drained(), func(time.Time) {}) }, func() { close(beside) })
	}()
	<-beside
	if err := l.Serve(echo); err == nil {
		t.Error("a second Serve succeeded")
	}
	l.Drain()
	l.Wait()
	if err := <-served; err != nil {
		t.Error(err)
	}
	never := accept.New(newPipes(), quiet(accept.Config{}))
	never.Close()
	if err := never.Serve(echo, func() { t.Error("something runs beside a Serve that does not") }); err != nil {
		t.Errorf("Serve after Close = %v", err)
	}
	never.Wait()
}

// TestServeFails: the listener's error ends it, and what it had started goes on.
func TestServeFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		l := accept.New(p, quiet(accept.Config{}))
		served := make(chan error, 1)
		go func() { served <- l.Serve(echo) }()
		c := p.dial(t)
		say(t, c, "a")
		p.errs <- errGone
		if err := <-served; !errors.Is(err, errGone) {
			t.Errorf("Serve = %v", err)
		}
		say(t, c, "b")
		l.Drain()
		<-l.Drained()
		expectEnd(t, c, "")
	})
}

// TestEvery: it ticks with the time it was asked for, until it is stopped.
func TestEvery(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		begin, stop := time.Now(), make(chan struct{})
		var at []time.Duration
		accept.Every(time.Second, stop, func(now time.Time) {
			at = append(at, now.Sub(begin))
			if len(at) == 3 {
				close(stop)
			}
		})
		if len(at) != 3 || at[0] != time.Second || at[2] != 3*time.Second {
			t.Errorf("got %v", at)
		}
	})
}

// TestStartStopStress: listeners that are stopped under load leave nothing behind
// (TestMain looks for goroutines), and no client is left waiting.
func TestStartStopStress(t *testing.T) {
	t.Parallel()
	for round := range 30 {
		l := accept.New(listen(t), quiet(accept.Config{MaxConns: 6, Refuse: func(c net.Conn) {
			_, _ = io.WriteString(c, "full")
			accept.Linger(c, 1<<10)
		}}))
		served := make(chan error, 1)
		go func() { served <- l.Serve(echo) }()
		some := make(chan struct{}, 1000)
		var clients sync.WaitGroup
		for range 8 {
			clients.Go(func() {
				var d net.Dialer
				for {
					c, err := d.DialContext(t.Context(), "tcp", l.Addr().String())
					if err != nil {
						return // stopped
					}
					_ = c.SetDeadline(time.Now().Add(20 * time.Second))
					for range 3 {
						b := []byte("ping")
						if _, err := c.Write(b); err != nil {
							break
						}
						if _, err := io.ReadFull(c, b); err != nil {
							if errors.Is(err, os.ErrDeadlineExceeded) {
								t.Error("nobody closed the connection")
							}
							break
						}
						if s := string(b); s != "ping" && s != "full" {
							t.Errorf("got %q", s)
						}
						select {
						case some <- struct{}{}:
						default:
						}
					}
					c.Close()
				}
			})
		}
		for range 10 * round {
			<-some
		}
		var stops sync.WaitGroup
		for i := range 3 {
			stops.Go(func() {
				if i == 0 && round%3 == 0 {
					l.Cut()
				}
				l.Drain()
				<-l.Drained()
			})
		}
		stops.Wait()
		if err := <-served; err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		if l.Open() != 0 {
			t.Errorf("round %d: %d connections are open", round, l.Open())
		}
		clients.Wait()
	}
}
