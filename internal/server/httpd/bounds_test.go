package httpd_test

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/server/httpd"
)

// bubble runs f with a server on pipes under fake time, with the default limits
// unless cfg says otherwise.
func bubble(t *testing.T, cfg httpd.Config, f func(t *testing.T, p *pipes)) {
	t.Helper()
	fakeTime(t, func(t *testing.T) {
		p := newPipes()
		if cfg.Access == nil {
			cfg.Access = leaf.Anyone(newIssuer(), nil)
		}
		s, err := httpd.New(p, quiet(cfg))
		if err != nil {
			t.Fatal(err)
		}
		run(t, s)
		f(t, p)
	})
}

// lifetime reads until the server closes the connection, and returns how long
// that took from begin.
func (c *client) lifetime(begin time.Time) time.Duration {
	_, _ = io.Copy(io.Discard, c.r)
	return time.Since(begin)
}

// trickle sends text one byte per pause, until the server has had enough.
func (c *client) trickle(text string, pause time.Duration) {
	var done sync.WaitGroup
	done.Go(func() {
		for i := range len(text) {
			if _, err := c.Write([]byte{text[i]}); err != nil {
				return
			}
			time.Sleep(pause)
		}
	})
	c.t.Cleanup(done.Wait)
}

// TestHeaderTimeout: the whole head must arrive within 5 s, however it trickles
// in, on whichever path, and wherever the paths change.
func TestHeaderTimeout(t *testing.T) {
	t.Parallel()
	endless := strings.Repeat("a", 100)
	for _, tt := range []struct {
		name  string
		first string // a complete request before, or nothing
		slow  string
	}{
		{"silent", "", ""},
		{"fast", "", "GET /api/segment/get/order HTTP/1.1\r\nUser-Agent: " + endless},
		{"net/http from the first byte", "", "POST /x HTTP/1.1\r\nUser-Agent: " + endless},
		{"net/http half-way", "", "GET /api/segment/get/order HTTP/1.1\r\nX: 1\r\nX: " + endless},
		{"fast after a request", fastGET("order"), "GET /api/segment/get/order HTTP/1.1\r\nUser-Agent: " + endless},
		{"net/http half-way after a request", fastGET("order"), "GET /api/segment/get/order HTTP/1.1\r\nX: 1\r\nX: " + endless},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, httpd.Config{}, func(t *testing.T, p *pipes) {
				c := p.dial(t)
				if tt.first != "" {
					c.ask(tt.first, "1")
					time.Sleep(30 * time.Second) // idle, not slow
				}
				begin := time.Now()
				// The start of the head at once and the rest slowly.
				n := min(20, len(tt.slow))
				c.send(tt.slow[:n])
				c.trickle(tt.slow[n:], 100*time.Millisecond)
				if got := c.lifetime(begin); got != 5*time.Second {
					t.Errorf("closed after %v, want 5s", got)
				}
			})
		})
	}
}

// TestBodyTimeout: a body that nobody asked for cannot hold a connection.
func TestBodyTimeout(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, head string
		status     int
	}{
		{"refused", "POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n", 404},
		{"ignored", "GET /healthz HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n400\r\n", 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, httpd.Config{}, func(t *testing.T, p *pipes) {
				c := p.dial(t)
				begin := time.Now()
				c.send(tt.head)
				c.trickle(strings.Repeat("a", 200), 100*time.Millisecond)
				if r := c.reply(); r.status != tt.status || !r.close {
					t.Errorf("got %v", r)
				}
				if got := c.lifetime(begin); got != 5*time.Second {
					t.Errorf("closed after %v, want 5s", got)
				}
			})
		})
	}
}

// TestTimeoutsDoNotBoundHandlers: the time for a head is not the time for a reply.
func TestTimeoutsDoNotBoundHandlers(t *testing.T) {
	t.Parallel()
	for _, path := range paths {
		t.Run(path.name, func(t *testing.T) {
			t.Parallel()
			iss := newIssuer()
			bubble(t, httpd.Config{Access: leaf.Anyone(iss, nil), HeaderTimeout: time.Second, IdleTimeout: time.Second}, func(t *testing.T, p *pipes) {
				iss.entered, iss.release = make(chan struct{}, 1), make(chan struct{})
				c := p.dial(t)
				c.send(path.get("block"))
				<-iss.entered
				time.Sleep(9 * time.Second)
				close(iss.release)
				c.expect(200, "1")
			})
		})
	}
}

// TestSlowButInTime: a head that needs several packets is served by the fast path.
func TestSlowButInTime(t *testing.T) {
	t.Parallel()
	bubble(t, httpd.Config{}, func(t *testing.T, p *pipes) {
		c := p.dial(t)
		for i := range 3 {
			c.trickle(fastGET("order"), 50*time.Millisecond)
			c.expect(200, fmt.Sprint(i+1))
			time.Sleep(50 * time.Second)
		}
	})
}

func TestIdleTimeout(t *testing.T) {
	t.Parallel()
	for _, path := range paths {
		t.Run(path.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, httpd.Config{}, func(t *testing.T, p *pipes) {
				c := p.dial(t)
				for i := range 100 { // activity at any time keeps it open
					c.ask(path.get("order"), fmt.Sprint(i+1))
					time.Sleep(777 * time.Millisecond)
				}
				c.ask(path.get("order"), "101")
				if got := c.lifetime(time.Now()); got < 60*time.Second || got > 60*time.Second+500*time.Millisecond {
					t.Errorf("closed after %v, want 60s to 60.5s", got)
				}
			})
		})
	}
}

// TestSlowReader: a client that asks and does not read is cut off.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		request string
	}{
		{"fast", fastGET("order")},
		{"fast pipelined", strings.Repeat(fastGET("order"), 30)},
		{"net/http", slowGET("order")},
		{"batch", "GET /api/segment/get/order?count=100000 HTTP/1.1\r\nHost: x\r\n\r\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, httpd.Config{}, func(t *testing.T, p *pipes) {
				c := p.dial(t)
				begin := time.Now()
				c.send(tt.request)
				// A write fails as soon as the other end is closed; while it is open,
				// nobody reads from it.
				_, err := io.Copy(c, endlessSpace{})
				if err == nil {
					t.Fatal("no error")
				}
				if got := time.Since(begin); got < 10*time.Second || got > 10500*time.Millisecond {
					t.Errorf("closed after %v, want 10s to 10.5s: %v", got, err)
				}
			})
		})
	}
}

type endlessSpace struct{}

func (endlessSpace) Read(p []byte) (int, error) { p[0] = ' '; return 1, nil }

// TestSlowReaderOfManyReplies: reading a little now and then does not keep a
// connection beyond the deadline of what is being written.
func TestSlowReaderOfManyReplies(t *testing.T) {
	t.Parallel()
	bubble(t, httpd.Config{}, func(t *testing.T, p *pipes) {
		c := p.dial(t)
		begin := time.Now()
		c.send(strings.Repeat(fastGET("order"), 30))
		buf := make([]byte, 1)
		for {
			if _, err := c.Read(buf); err != nil {
				break
			}
			time.Sleep(time.Second)
		}
		if got := time.Since(begin); got > 12*time.Second {
			t.Errorf("closed after %v, want about 10s", got)
		}
	})
}

func TestHeadSize(t *testing.T) {
	t.Parallel()
	const line = "GET /api/segment/get/order HTTP/1.1\r\nHost: x\r\n"
	pad := func(field string, size int) string {
		head := line + field + ": "
		return head + strings.Repeat("a", size-len(head)-4) + "\r\n\r\n"
	}
	for _, tt := range []struct {
		name   string
		head   string
		status int
	}{
		{"fast path's largest", pad("User-Agent", 2<<10), 200},
		{"beyond the fast path", pad("User-Agent", 2<<10+1), 200},
		{"allowed", pad("User-Agent", 8<<10), 200},
		{"allowed net/http", pad("X-Any", 8<<10), 200},
		{"oversized", pad("User-Agent", 8<<10+1), 431},
		{"oversized net/http", pad("X-Any", 8<<10+1), 431},
		{"endless field", line + "User-Agent: " + strings.Repeat("a", 100_000), 431},
		{"endless path", "GET /api/segment/get/" + strings.Repeat("a", 100_000), 431},
		{"many fields", line + strings.Repeat("Via: x\r\n", 2000), 431},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, httpd.Config{}, func(t *testing.T, p *pipes) {
				c := p.dial(t)
				go func() { _, _ = io.WriteString(c, tt.head) }()
				if r := c.reply(); r.status != tt.status || r.close != (tt.status == 431) {
					t.Errorf("got %v, want %d", r, tt.status)
				}
				if tt.status == 431 {
					c.expectEnd()
				}
			})
		})
	}
}

// TestConnectionLimit: a connection beyond the limit, on whichever path the
// others are, is told 503 without a request of its own.
func TestConnectionLimit(t *testing.T) {
	t.Parallel()
	s := start(t, quiet(httpd.Config{Access: leaf.Anyone(newIssuer(), nil), MaxConns: 2}))
	fast, slow := dial(t, s), dial(t, s)
	fast.ask(fastGET("order"), "1")
	slow.ask(slowGET("order"), "2")

	for range 3 {
		c := dial(t, s)
		c.send(fastGET("order")) // the reply must survive unread bytes
		r := c.reply()
		if r.status != 503 || !r.close || !strings.Contains(r.body, `"code":"too_many_connections"`) || r.header.Get("Retry-After") != "1" {
			t.Errorf("got %v %v", r, r.header)
		}
		c.expectEnd()
	}

	for i, c := range []*client{fast, slow} {
		c.Close()
		// The place is free as soon as the server has noticed.
		var next *client
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			next = dial(t, s)
			next.send(fastGET("order"))
			if r := next.reply(); r.status == 200 {
				break
			} else if time.Now().After(deadline) {
				t.Fatalf("connection %d: its place is not free: %v", i, r)
			}
			next.Close()
		}
		defer next.Close()
	}
}

// TestStateHasADeadline: a database that hangs does not hang /db.
func TestStateHasADeadline(t *testing.T) {
	t.Parallel()
	cfg := httpd.Config{DB: func(ctx context.Context, _ httpd.PageRequest) (httpd.Page, error) {
		<-ctx.Done()
		return httpd.Page{}, fmt.Errorf("list rows: %w", ctx.Err())
	}}
	bubble(t, cfg, func(t *testing.T, p *pipes) {
		begin := time.Now()
		c := p.dial(t)
		c.send("GET /db HTTP/1.1\r\nHost: localhost\r\n\r\n")
		if r := c.reply(); r.status != 503 || !strings.Contains(r.body, "not_ready") {
			t.Errorf("got %v", r)
		}
		if got := time.Since(begin); got != 5*time.Second {
			t.Errorf("took %v", got)
		}
	})
}

// besideAWait gives f a connection in a bubble, and its issuer, of which "block" waits.
func besideAWait(t *testing.T, f func(t *testing.T, c *client, iss *issuer)) {
	t.Helper()
	iss := newIssuer()
	bubble(t, httpd.Config{Access: leaf.Anyone(iss, nil)}, func(t *testing.T, p *pipes) {
		iss.entered, iss.release = make(chan struct{}, 1), make(chan struct{}) // of the bubble: its time goes on beside a wait for them
		f(t, p.dial(t), iss)
	})
}

// TestRepliesBesideAWait: the replies to requests that came together with one that waits for IDs do not wait with it.
func TestRepliesBesideAWait(t *testing.T) {
	besideAWait(t, func(t *testing.T, c *client, iss *issuer) {
		c.send(fastGET("order") + fastGET("block") + fastGET("order"))
		c.expect(200, "1")
		<-iss.entered
		close(iss.release)
		c.expect(200, "1")
		c.expect(200, "2")
	})
}

// TestNothingFollowsACutReply: when a client has taken a part of a reply in the time for it, nothing follows that part, also
// where the reply was written because another request is about to wait. The client would read the next reply as the rest of
// the first one, and take the ID of one tag for that of another. The requests behind take no IDs.
func TestNothingFollowsACutReply(t *testing.T) {
	t.Parallel()
	besideAWait(t, func(t *testing.T, c *client, iss *issuer) {
		c.send(fastGET("order") + fastGET("block") + fastGET("order"))
		part := make([]byte, 100)
		if _, err := io.ReadFull(c.Conn, part); err != nil {
			t.Fatal(err)
		}
		<-iss.entered // the time for the reply is over
		close(iss.release)
		if rest, err := io.ReadAll(c.Conn); err != nil || len(rest) > 0 {
			t.Errorf("behind %q came %q, %v", part, rest, err)
		}
		iss.mu.Lock()
		defer iss.mu.Unlock()
		if got := iss.calls; !slices.Equal(got, []string{"order 1", "block 1"}) {
			t.Errorf("calls %q", got)
		}
	})
}
