package respd_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/respd"
)

// TestProtocolErrors: what cannot be a request is told so once, after the replies to
// the requests before it, and the connection ends without a reset.
func TestProtocolErrors(t *testing.T) {
	t.Parallel()
	s := start(t, both())
	for _, tt := range []struct{ name, bad, want string }{
		{"count", "*1025\r\n", "invalid multibulk length, must be at most 1024"},
		{"length", "*1\r\n$65536\r\n", "invalid bulk length, a request has at most 65536 bytes"},
		{"nested", "*1\r\n*1\r\n", "expected '$', got '*'"},
		{"quotes", "ECHO \"a\r\n", "unbalanced quotes in request"},
		{"long line", strings.Repeat("a", 64<<10), "too big request, it has at most 65536 bytes"},
		{"much behind it", "*x\r\n" + strings.Repeat("x", 40<<10), "invalid multibulk length"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := dial(t, s)
			c.send(request("PING") + tt.bad)
			if got := c.reply(); got != "+PONG\r\n" {
				t.Errorf("got %q", got)
			}
			if got, want := c.reply(), "-ERR Protocol error: "+tt.want; !strings.HasPrefix(got, want) {
				t.Errorf("got %q, want %q", got, want)
			}
			c.expectEnd()
		})
	}
}

// TestHTTPIsRefused: a browser can be made to send a request to any port.
func TestHTTPIsRefused(t *testing.T) {
	t.Parallel()
	for _, head := range []string{"POST / HTTP/1.1\r\n", "GET / HTTP/1.1\r\n", "PUT / HTTP/1.1\r\nHost: leaf\r\n"} {
		iss := newIssuer()
		c := dial(t, start(t, quiet(respd.Config{Access: leaf.Anyone(iss, nil)})))
		c.send(head + "\r\nINCR order\r\n")
		for line := c.reply(); !strings.HasPrefix(line, "-ERR this is not HTTP"); line = c.reply() {
			if !strings.HasPrefix(line, "-ERR unknown command 'PUT'") {
				t.Fatalf("%q: got %q", head, line)
			}
		}
		c.expectEnd()
		if len(iss.calls) > 0 {
			t.Errorf("%q: an ID was issued", head)
		}
	}
}

// TestNoReplies: a client that asks for no reply to the next command, or to all of them, would take the reply to it for that to
// a later one, of another tag. It gets one error, and its connection ends.
func TestNoReplies(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"OFF", "skip"} {
		iss := newIssuer()
		c := dial(t, start(t, quiet(respd.Config{Access: leaf.Anyone(iss, nil)})))
		c.send("CLIENT REPLY " + mode + "\r\nINCR order\r\nINCR user\r\n")
		if line := c.reply(); !strings.HasPrefix(line, "-ERR leaf: CLIENT REPLY is refused") {
			t.Errorf("%s: got %q", mode, line)
		}
		c.expectEnd()
		if len(iss.calls) > 0 {
			t.Errorf("%s: an ID was issued", mode)
		}
	}
}

// TestLargestRequest: one of exactly the limit is answered, whatever its shape.
func TestLargestRequest(t *testing.T) {
	t.Parallel()
	cfg := both()
	cfg.MaxRequestBytes = 10_000
	s := start(t, cfg)
	frame := len(request("ECHO", strings.Repeat("x", 9000))) - 9000
	for range 3 {
		c := dial(t, s)
		word := strings.Repeat("x", cfg.MaxRequestBytes-frame)
		c.ask(fmt.Sprintf("$%d\r\n%s\r\n", len(word), word), "ECHO", word)
		c.ask("+PONG\r\n", "PING")
		c.send("ECHO " + word + "\r\n")
		if got := c.reply(); !strings.HasPrefix(got, fmt.Sprintf("$%d\r\n", len(word))) {
			t.Errorf("got %.20q", got)
		}
		c.send(request("ECHO", word+"x"))
		if got := c.reply(); !strings.HasPrefix(got, "-ERR Protocol error: invalid bulk length") {
			t.Errorf("got %.40q", got)
		}
	}
}

// lifetime reads until the server closes the connection, and returns how long
// that took from begin.
func (c *client) lifetime(begin time.Time) time.Duration {
	_, _ = io.Copy(io.Discard, c.r)
	return time.Since(begin)
}

func between(t *testing.T, what string, got, low, high time.Duration) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("%s: the connection ended after %v, want %v to %v", what, got, low, high)
	}
}

// TestRequestTimeout: a request must arrive within 5 s, however it trickles in, and
// whatever came before.
func TestRequestTimeout(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, first, slow string }{
		{"array", "", request("ECHO", strings.Repeat("x", 500))},
		{"line", "", strings.Repeat("x", 500)},
		{"after a request", request("PING"), request("ECHO", strings.Repeat("x", 500))},
		{"many arguments", "", request(strings.Split(strings.Repeat("x", 500), "")...)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, both(), func(t *testing.T, p *pipes) {
				c := p.dial(t)
				if tt.first != "" {
					c.send(tt.first)
					c.reply()
					time.Sleep(time.Minute) // idle, not slow
				}
				begin := time.Now()
				var sending sync.WaitGroup
				sending.Go(func() {
					for i := range len(tt.slow) {
						if _, err := c.Write([]byte{tt.slow[i]}); err != nil {
							return
						}
						time.Sleep(100 * time.Millisecond)
					}
				})
				between(t, tt.name, c.lifetime(begin), 5*time.Second, 5*time.Second+time.Second)
				sending.Wait()
			})
		})
	}
}

// TestSlowButInTime: each request has its own time.
func TestSlowButInTime(t *testing.T) {
	t.Parallel()
	bubble(t, both(), func(t *testing.T, p *pipes) {
		c := p.dial(t)
		for i := range 5 {
			text := request("INCR", "a")
			c.send(text[:10])
			time.Sleep(4 * time.Second)
			// The rest of it comes with the first half of the next one.
			c.send(text[10:] + text[:5])
			if got, want := c.reply(), fmt.Sprintf(":%d\r\n", 2*i+1); got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
			time.Sleep(4 * time.Second)
			c.send(text[5:])
			if got, want := c.reply(), fmt.Sprintf(":%d\r\n", 2*i+2); got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
	})
}

func TestIdleTimeout(t *testing.T) {
	t.Parallel()
	_, wantsToken := guarded()
	for _, tt := range []struct {
		name string
		cfg  respd.Config
		idle time.Duration
	}{
		{"default", both(), 30 * time.Minute},
		{"must authenticate", wantsToken, time.Minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, tt.cfg, func(t *testing.T, p *pipes) {
				silent, used := p.dial(t), p.dial(t)
				begin := time.Now()
				between(t, "silent", silent.lifetime(begin), tt.idle, tt.idle+time.Second)
				if tt.idle > time.Minute {
					used.expectEnd()
					used = p.dial(t)
					for range 3 {
						used.ask("+PONG\r\n", "PING")
						time.Sleep(tt.idle - time.Second)
					}
					used.ask("+PONG\r\n", "PING")
					begin = time.Now()
					between(t, "used", used.lifetime(begin), tt.idle, tt.idle+time.Second)
				}
			})
		})
	}
	t.Run("authenticated", func(t *testing.T) {
		t.Parallel()
		_, cfg := guarded()
		bubble(t, cfg, func(t *testing.T, p *pipes) {
			c := p.dial(t)
			c.ask("+OK\r\n", "AUTH", "s3cret")
			time.Sleep(20 * time.Minute)
			c.ask(":1\r\n", "INCR", "a")
		})
	})
}

// TestStrangersTime: a client that must authenticate has a minute, however it spends it,
// and another one after RESET, which gives a stranger none.
func TestStrangersTime(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, first, every string }{
		{"refused requests", "", request("INCR", "a")},
		{"empty lines", "", "\r\n"},
		{"wrong passwords", "", request("AUTH", "guess")},
		{"RESET", "", request("RESET")},
		{"always half a request", "PI", "NG\r\nPI"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, cfg := guarded()
			bubble(t, cfg, func(t *testing.T, p *pipes) {
				c, begin := p.dial(t), time.Now()
				var sending sync.WaitGroup
				sending.Go(func() {
					for text := tt.first + tt.every; ; text = tt.every {
						if _, err := io.WriteString(c, text); err != nil {
							return
						}
						time.Sleep(3 * time.Second)
					}
				})
				between(t, tt.name, c.lifetime(begin), time.Minute, time.Minute+time.Second)
				sending.Wait()
			})
		})
	}
	t.Run("after RESET", func(t *testing.T) {
		t.Parallel()
		_, cfg := guarded()
		bubble(t, cfg, func(t *testing.T, p *pipes) {
			c := p.dial(t)
			c.ask("+OK\r\n", "AUTH", "s3cret")
			time.Sleep(20 * time.Minute)
			c.ask("+RESET\r\n", "RESET")
			between(t, "after RESET", c.lifetime(time.Now()), time.Minute, time.Minute+time.Second)
		})
	})
}

// TestSlowReader: a client that does not read its replies loses its connection after
// 10 s, and holds nobody up.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	bubble(t, both(), func(t *testing.T, p *pipes) {
		slow, other := p.dial(t), p.dial(t)
		begin := time.Now()
		slow.send(request("LEAF.NEXT", "a", "COUNT", "100000"))
		other.ask(":1\r\n", "INCR", "b")
		synctest.Wait()
		time.Sleep(9 * time.Second)
		if _, err := slow.r.ReadByte(); err != nil {
			t.Errorf("after 9 s: %v", err)
		}
		time.Sleep(12 * time.Second)
		between(t, "slow", slow.lifetime(begin), 10*time.Second, 22*time.Second)
		other.ask(":2\r\n", "INCR", "b")
	})
}

// TestLargeBatchInPieces: a reply of 2 MB is complete, and does not stand in memory as a
// whole.
func TestLargeBatchInPieces(t *testing.T) {
	t.Parallel()
	c := dial(t, start(t, both()))
	for round := range int64(2) {
		c.send(request("LEAF.NEXT", "a", "COUNT", "100000"))
		ids, err := integers(strings.TrimPrefix(c.reply(), "*100000\r\n"))
		if err != nil || len(ids) != leaf.MaxBatch {
			t.Fatalf("%d IDs, %v", len(ids), err)
		}
		for i, id := range ids {
			if want := round*leaf.MaxBatch + int64(i) + 1; id != want {
				t.Fatalf("ID %d is %d, want %d", i, id, want)
			}
		}
	}
	c.ask(":200001\r\n", "INCR", "a")
}

// TestMaxConns: one connection too many is told so, and a place that becomes free can be
// taken.
func TestMaxConns(t *testing.T) {
	t.Parallel()
	cfg := both()
	cfg.MaxConns = 2
	s := start(t, cfg)
	first, second := dial(t, s), dial(t, s)
	first.ask("+PONG\r\n", "PING")
	second.ask("+PONG\r\n", "PING")
	for range 3 {
		c := dial(t, s)
		c.send(request("INCR", "a"))
		if got := c.reply(); got != "-ERR max number of clients reached\r\n" {
			t.Errorf("got %q", got)
		}
		c.expectEnd()
	}
	first.ask("+OK\r\n", "QUIT")
	first.expectEnd()
	for deadline := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		c := dial(t, s)
		c.send(request("INCR", "a"))
		if c.reply() == ":1\r\n" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the place is still taken")
		}
		c.Close()
	}
	if got := s.Stats(); got.Refused < 3 || got.Connections != 2 {
		t.Errorf("got %+v", got)
	}
}

// TestOneWritePerBatch: the replies to all requests of one packet leave together.
func TestOneWritePerBatch(t *testing.T) {
	t.Parallel()
	p := newPipes()
	s, err := respd.New(p, both())
	if err != nil {
		t.Fatal(err)
	}
	run(t, s)
	const requests = 1000
	conn := newScript(strings.Repeat(request("INCR", "order"), requests))
	p.conns <- conn
	<-conn.closed
	var want strings.Builder
	for i := range requests {
		fmt.Fprintf(&want, ":%d\r\n", i+1)
	}
	if conn.out.String() != want.String() {
		t.Errorf("got %d bytes, want %d", conn.out.Len(), want.Len())
	}
	if conn.writes != conn.reads {
		t.Errorf("%d writes for %d reads", conn.writes, conn.reads)
	}
}

// TestAllocatesNothing: thousand more INCR on a connection cost no allocation, apart
// from the growth of the buffers.
func TestAllocatesNothing(t *testing.T) {
	p := newPipes()
	var id counter
	s, err := respd.New(p, quiet(respd.Config{Access: leaf.Anyone(&id, nil)}))
	if err != nil {
		t.Fatal(err)
	}
	run(t, s)
	allocs := func(requests int) float64 {
		data := strings.Repeat(request("INCR", "order")+request("incr", "invoice")+"INCR order\r\n"+request("iNCR", "order"), requests/4)
		return testing.AllocsPerRun(10, func() {
			conn := newScript(data)
			conn.out = nil
			p.conns <- conn
			<-conn.closed
		})
	}
	few, many := allocs(100), allocs(1100)
	if more := many - few; more > 10 {
		t.Errorf("1000 requests made %v allocations", more)
	}
}

// counter is an Issuer that allocates for batches only.
type counter struct{ id int64 }

func (c *counter) Next(context.Context, string) (int64, error) {
	c.id++
	return c.id, nil
}

func (c *counter) NextN(_ context.Context, _ string, n int) ([]leaf.Range, error) {
	c.id += int64(n)
	return []leaf.Range{{Lo: c.id - int64(n) + 1, Hi: c.id + 1}}, nil
}

// script is a connection that sends what it was given, as fast as it is read.
type script struct {
	net.Conn // nil: what is not below must not be called
	in       string
	out      *strings.Builder // nil: discard
	closed   chan struct{}
	first    int // bytes of the first Read, at most; 0: as many as there is room for

	reads, writes int
}

func newScript(in string) *script {
	return &script{in: in, out: &strings.Builder{}, closed: make(chan struct{})}
}

func (s *script) Read(p []byte) (int, error) {
	if s.in == "" {
		return 0, io.EOF
	}
	if s.reads == 0 && s.first > 0 {
		p = p[:min(len(p), s.first)]
	}
	n := copy(p, s.in)
	s.in = s.in[n:]
	s.reads++
	return n, nil
}

func (s *script) Write(p []byte) (int, error) {
	s.writes++
	if s.out != nil {
		s.out.Write(p)
	}
	return len(p), nil
}

func (s *script) Close() error {
	close(s.closed)
	return nil
}

func (s *script) SetReadDeadline(time.Time) error  { return nil }
func (s *script) SetWriteDeadline(time.Time) error { return nil }
func (s *script) LocalAddr() net.Addr              { return &net.UnixAddr{Name: "script", Net: "unix"} }
func (s *script) RemoteAddr() net.Addr             { return s.LocalAddr() }

// besideAWait gives f a connection in a bubble, and its issuer, of which "block" waits.
func besideAWait(t *testing.T, f func(t *testing.T, c *client, iss *issuer)) {
	t.Helper()
	iss := newIssuer()
	bubble(t, respd.Config{Access: leaf.Anyone(iss, nil)}, func(t *testing.T, p *pipes) {
		iss.entered, iss.release = make(chan struct{}, 1), make(chan struct{}) // of the bubble: its time goes on beside a wait for them
		f(t, p.dial(t), iss)
	})
}

// TestRepliesBesideAWait: the replies to requests that came together with one that waits for IDs do not wait with it. A panic
// of that request is its own reply.
func TestRepliesBesideAWait(t *testing.T) {
	besideAWait(t, func(t *testing.T, c *client, iss *issuer) {
		c.send(request("INCR", "order") + request("INCR", "block") + request("INCR", "panic") + request("INCR", "order"))
		if got := c.reply(); got != ":1\r\n" {
			t.Errorf("beside a request that waits: got %q", got)
		}
		<-iss.entered
		close(iss.release)
		for _, want := range []string{":1\r\n", "-ERR leaf: internal error", ":2\r\n"} {
			if got := c.reply(); !strings.HasPrefix(got, want) {
				t.Errorf("after the wait: got %q, want %q", got, want)
			}
		}
	})
}

// TestNoIDsForAClientThatIsGone: when a client does not take a reply that is written because another request is about to wait,
// the requests behind that one take no IDs: each might wait for them, and no reply would reach the client.
func TestNoIDsForAClientThatIsGone(t *testing.T) {
	besideAWait(t, func(t *testing.T, c *client, iss *issuer) {
		c.send(request("INCR", "order") + request("INCR", "block") + request("INCR", "order"))
		<-iss.entered // the time for the first reply is over
		close(iss.release)
		if rest, err := io.ReadAll(c.Conn); err != nil || len(rest) > 0 {
			t.Errorf("came %q, %v", rest, err)
		}
		iss.mu.Lock()
		defer iss.mu.Unlock()
		if got := iss.calls; !slices.Equal(got, []string{"order 1", "block 1"}) {
			t.Errorf("calls %q", got)
		}
	})
}
