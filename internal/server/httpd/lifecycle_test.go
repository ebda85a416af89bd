package httpd_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/httpd"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
)

func within(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), d)
}

// TestShutdownClosesIdleAtOnce: idle connections of both paths, one that never
// sent anything and one with half a head.
func TestShutdownClosesIdleAtOnce(t *testing.T) {
	t.Parallel()
	fakeTime(t, func(t *testing.T) {
		p := newPipes()
		s, err := httpd.New(p, quiet(httpd.Config{Access: leaf.Anyone(newIssuer(), nil)}))
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- s.Serve() }()

		silent, fast, slow, half := p.dial(t), p.dial(t), p.dial(t), p.dial(t)
		fast.ask(fastGET("order"), "1")
		slow.ask(slowGET("order"), "2")
		half.send("GET /api/segm")
		synctest.Wait()

		begin := time.Now()
		ctx, cancel := within(10 * time.Second)
		defer cancel()
		if err := s.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		// net/http looks for idle connections in growing intervals.
		if got := time.Since(begin); got > 10*time.Millisecond {
			t.Errorf("took %v", got)
		}
		for _, c := range []*client{silent, fast, slow, half} {
			c.expectEnd()
		}
	})
}

// TestShutdownWhileReplying: a connection whose reply was made before the shutdown
// and is read after its start is idle then, and must not wait for another request.
func TestShutdownWhileReplying(t *testing.T) {
	t.Parallel()
	fakeTime(t, func(t *testing.T) {
		p := newPipes()
		s, err := httpd.New(p, quiet(httpd.Config{Access: leaf.Anyone(newIssuer(), nil)}))
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = s.Serve() }()
		c := p.dial(t)
		c.send(fastGET("order"))
		synctest.Wait() // the reply stands in the pipe
		down := make(chan error, 1)
		go func() { down <- s.Shutdown(t.Context()) }()
		synctest.Wait()
		begin := time.Now()
		c.expect(200, "1")
		c.expectEnd()
		if err := <-down; err != nil {
			t.Error(err)
		}
		if got := time.Since(begin); got > 10*time.Millisecond {
			t.Errorf("took %v", got)
		}
	})
}

// TestShutdownDoesNotKeepOthersWaiting: idle connections of either path are closed
// at once, although a request on the other path takes its time.
func TestShutdownDoesNotKeepOthersWaiting(t *testing.T) {
	t.Parallel()
	for i, path := range paths {
		t.Run(path.name, func(t *testing.T) {
			t.Parallel()
			fakeTime(t, func(t *testing.T) {
				p, iss := newPipes(), newIssuer()
				s, err := httpd.New(p, quiet(httpd.Config{Access: leaf.Anyone(iss, nil)}))
				if err != nil {
					t.Fatal(err)
				}
				go func() { _ = s.Serve() }()
				idle, busy := p.dial(t), p.dial(t)
				idle.ask(path.get("order"), "1")
				busy.send(paths[1-i].get("block"))
				<-iss.entered
				synctest.Wait()
				down := make(chan error, 1)
				go func() { down <- s.Shutdown(t.Context()) }()
				begin := time.Now()
				idle.expectEnd()
				if got := time.Since(begin); got > 10*time.Millisecond {
					t.Errorf("closed after %v", got)
				}
				close(iss.release)
				busy.expect(200, "1")
				if err := <-down; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestShutdownAnswersWhatRuns: a request that is being handled gets its reply,
// with the notice that the connection ends, and Shutdown waits for it.
func TestShutdownAnswersWhatRuns(t *testing.T) {
	t.Parallel()
	for _, path := range paths {
		t.Run(path.name, func(t *testing.T) {
			t.Parallel()
			fakeTime(t, func(t *testing.T) {
				p, iss := newPipes(), newIssuer()
				s, err := httpd.New(p, quiet(httpd.Config{Access: leaf.Anyone(iss, nil)}))
				if err != nil {
					t.Fatal(err)
				}
				served := make(chan error, 1)
				go func() { served <- s.Serve() }()
				c := p.dial(t)
				c.send(path.get("block"))
				<-iss.entered

				down := make(chan error, 1)
				go func() {
					ctx, cancel := within(10 * time.Second)
					defer cancel()
					down <- s.Shutdown(ctx)
				}()
				time.Sleep(7 * time.Second)
				select {
				case err := <-down:
					t.Fatalf("Shutdown did not wait: %v", err)
				default:
				}
				close(iss.release)
				if r := c.reply(); r.status != 200 || r.body != "1" || !r.close {
					t.Errorf("got %v", r)
				}
				c.expectEnd()
				if err := errors.Join(<-down, <-served); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestShutdownDuringHandOver: net/http may be in a handler while the fast path is
// still about to let go of the connection. A shutdown at that moment once
// cancelled the request, in one of a hundred rounds.
func TestShutdownDuringHandOver(t *testing.T) {
	t.Parallel()
	fakeTime(t, func(t *testing.T) {
		for range 500 {
			p, iss := newPipes(), newIssuer()
			s, err := httpd.New(p, quiet(httpd.Config{Access: leaf.Anyone(iss, nil)}))
			if err != nil {
				t.Fatal(err)
			}
			go func() { _ = s.Serve() }()
			c := p.dial(t)
			c.send(slowGET("block"))
			<-iss.entered
			down := make(chan error, 1)
			go func() { down <- s.Shutdown(t.Context()) }()
			synctest.Wait()
			close(iss.release)
			c.expect(200, "1")
			if err := <-down; err != nil {
				t.Error(err)
			}
		}
	})
}

// TestShutdownGivesUp: at its deadline it cancels requests, closes connections,
// and says so.
func TestShutdownGivesUp(t *testing.T) {
	t.Parallel()
	for _, path := range paths {
		t.Run(path.name, func(t *testing.T) {
			t.Parallel()
			fakeTime(t, func(t *testing.T) {
				p, iss := newPipes(), newIssuer()
				s, err := httpd.New(p, quiet(httpd.Config{Access: leaf.Anyone(iss, nil)}))
				if err != nil {
					t.Fatal(err)
				}
				served := make(chan error, 1)
				go func() { served <- s.Serve() }()
				c := p.dial(t)
				c.send(path.get("block"))
				<-iss.entered

				ctx, cancel := within(time.Second)
				defer cancel()
				err = s.Shutdown(ctx)
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "with 1 connections open") {
					t.Errorf("got %v", err)
				}
				c.expectEnd()
				if err := <-served; err != nil {
					t.Error(err)
				}
				// The request was cancelled, so nothing is left to wait for.
				again, cancel := within(time.Second)
				defer cancel()
				if err := s.Shutdown(again); err != nil {
					t.Errorf("second call: %v", err)
				}
			})
		})
	}
}

// TestReadyzWhileDraining: a load balancer that asks during the shutdown learns
// about it.
func TestReadyzWhileDraining(t *testing.T) {
	t.Parallel()
	fakeTime(t, func(t *testing.T) {
		p := newPipes()
		asked, answer := make(chan struct{}), make(chan struct{})
		s, err := httpd.New(p, quiet(httpd.Config{Ready: func() leaf.Readiness {
			close(asked)
			<-answer
			return leaf.Readiness{Segment: leaf.ModeReadiness{Enabled: true, Ready: true}, Reasons: []string{"a remark"}}
		}}))
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = s.Serve() }()
		c := p.dial(t)
		c.send("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n")
		<-asked
		down := make(chan error, 1)
		go func() { down <- s.Shutdown(t.Context()) }()
		synctest.Wait()
		close(answer)
		c.expect(503, `{"ready":false,"modes":{"segment":{"ready":false}},"reasons":["the server is shutting down","a remark"]}`+"\n")
		if err := <-down; err != nil {
			t.Error(err)
		}
	})
}

func TestShutdownWithoutServe(t *testing.T) {
	t.Parallel()
	s, err := httpd.New(servertest.Listen(t, "127.0.0.1:0"), quiet(httpd.Config{}))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := s.Serve(); err != nil {
		t.Errorf("Serve after Shutdown: %v", err)
	}
	var d net.Dialer
	if c, err := d.DialContext(t.Context(), "tcp", s.Addr().String()); err == nil {
		c.Close()
		t.Error("the port is still open")
	}
}

func TestServeTwice(t *testing.T) {
	t.Parallel()
	s := start(t, quiet(httpd.Config{}))
	dial(t, s).ask("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", "ok\n")
	if err := s.Serve(); err == nil {
		t.Error("no error")
	}
}

// TestAcceptErrors: a shortage is waited out, and anything else ends Serve.
func TestAcceptErrors(t *testing.T) {
	t.Parallel()
	fakeTime(t, func(t *testing.T) {
		p := newPipes()
		s, err := httpd.New(p, quiet(httpd.Config{Access: leaf.Anyone(newIssuer(), nil)}))
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- s.Serve() }()
		begin := time.Now()
		for range 10 {
			p.errs <- &net.OpError{Op: "accept", Err: syscall.EMFILE}
		}
		c := p.dial(t)
		c.ask(fastGET("order"), "1")
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

// TestStartStopStress: servers that are stopped under load leave nothing behind
// (TestMain looks for goroutines) and never issue an ID twice or a wrong reply.
func TestStartStopStress(t *testing.T) {
	t.Parallel()
	for round := range 20 {
		s, err := httpd.New(servertest.Listen(t, "127.0.0.1:0"), quiet(httpd.Config{Access: leaf.Anyone(newIssuer(), nil), MaxConns: 6}))
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
					for i := range 5 {
						if _, err := conn.Write([]byte(paths[(n+i)%2].get("order"))); err != nil {
							break
						}
						resp, err := http.ReadResponse(c.r, nil)
						if err != nil {
							break
						}
						resp.Body.Close()
						if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusServiceUnavailable {
							t.Errorf("status %d", resp.StatusCode)
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

// TestPanicOnTheFastPath: a foreign handler that panics costs its connection,
// nothing else.
func TestPanicOnTheFastPath(t *testing.T) {
	t.Parallel()
	var lc net.ListenConfig
	ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log := &syncBuffer{}
	s, err := httpd.Mount(ln, httpd.Config{Logger: log.logger()}, http.NotFoundHandler(),
		always(func(_ context.Context, mode httpd.Mode, key string, body []byte) ([]byte, error) {
			if key == "panic" {
				panic("on purpose")
			}
			return fmt.Appendf(body, "%v %s", mode, key), nil
		}))
	if err != nil {
		t.Fatal(err)
	}
	run(t, s)
	bad, good := dial(t, s), dial(t, s)
	good.ask(fastGET("a"), "segment a")
	bad.send(fastGET("panic"))
	bad.expectEnd()
	good.ask("GET /api/snowflake/get/b HTTP/1.1\r\nHost: x\r\n\r\n", "snowflake b")
	if !strings.Contains(log.String(), "on purpose") {
		t.Errorf("log: %s", log.String())
	}
}

// TestHalfClosedClient: a client that sends its request and closes its sending
// side gets an answer, and never an empty 200 when its request was cancelled.
func TestHalfClosedClient(t *testing.T) {
	t.Parallel()
	for _, path := range paths {
		t.Run(path.name, func(t *testing.T) {
			t.Parallel()
			iss := newIssuer()
			c := dial(t, start(t, quiet(httpd.Config{Access: leaf.Anyone(iss, nil)})))
			c.ask(path.get("order"), "1")
			c.send(path.get("block"))
			<-iss.entered
			if err := c.Conn.(*net.TCPConn).CloseWrite(); err != nil {
				t.Fatal(err)
			}
			if path.name == "fast" {
				close(iss.release) // there, nobody notices the half-close
				c.expect(200, "1")
				return
			}
			if r := c.reply(); r.status != 503 || !strings.Contains(r.body, "not_ready") {
				t.Errorf("got %v", r)
			}
		})
	}
}

func TestConfigValidate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		cfg  httpd.Config
		want string // in the error; empty: none
	}{
		{"zero", httpd.Config{}, ""},
		{"smallest", httpd.Config{MaxConns: 1, HeaderTimeout: 1e6, IdleTimeout: 1e6, WriteTimeout: 1e6, MaxHeadBytes: 5 << 10}, ""},
		{"conns", httpd.Config{MaxConns: -1}, `max_conns="-1": must be 1 or more`},
		{"header", httpd.Config{HeaderTimeout: -1}, `header_timeout="-1ns": must be 1ms or more`},
		{"idle", httpd.Config{IdleTimeout: 60}, `idle_timeout="60ns": must be 1ms or more`},
		{"write", httpd.Config{WriteTimeout: -time.Second}, `write_timeout="-1s"`},
		{"small head", httpd.Config{MaxHeadBytes: 4096}, `max_head_bytes="4096": must be 5120 to 1048576`},
		{"large head", httpd.Config{MaxHeadBytes: 1<<20 + 1}, `max_head_bytes="1048577"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := tt.cfg.Validate()
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, leaf.ErrBadRequest) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
			if _, err := httpd.New(servertest.Listen(t, "127.0.0.1:0"), tt.cfg); !errors.Is(err, leaf.ErrBadRequest) {
				t.Errorf("New: %v", err)
			}
		})
	}
}
