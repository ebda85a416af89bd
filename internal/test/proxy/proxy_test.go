package proxy_test

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leaf-idgen/leaf/internal/test/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestForwardsUnchangedAndInOrder(t *testing.T) {
	t.Parallel()
	p, _ := start(t)
	sent := make([]byte, 5<<20)
	if _, err := rand.Read(sent); err != nil {
		t.Fatal(err)
	}
	c := dial(t, p)
	var wait sync.WaitGroup
	defer wait.Wait()
	wait.Go(func() {
		if _, err := c.Write(sent); err != nil {
			t.Errorf("write: %v", err)
		}
		_ = c.CloseWrite() // the rest of the echo must still arrive
	})
	got, err := io.ReadAll(c)
	if err != nil || !bytes.Equal(got, sent) {
		t.Errorf("%d bytes, error %v; want the same %d", len(got), err, len(sent))
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	p, _ := start(t)
	a, b := dial(t, p), dial(t, p)
	say(t, a, "x")
	say(t, b, "x")
	if p.Open() != 2 || p.Accepted() != 2 {
		t.Errorf("Open, Accepted = %d, %d; want 2, 2", p.Open(), p.Accepted())
	}
	p.Cut()
	for _, c := range []net.Conn{a, b} {
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("read after Cut: %v, want a reset", err)
		}
	}
	say(t, dial(t, p), "new connections pass")
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	p, _ := start(t)
	c := dial(t, p)
	say(t, c, "x")
	p.Refuse()
	if _, err := net.Dial("tcp", p.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial while refusing: %v, want connection refused", err)
	}
	say(t, c, "open connections stay")
	_, number, _ := net.SplitHostPort(p.Addr())
	if l, err := net.Listen("unix", "@leaf-test-port-"+number); err == nil && runtime.GOOS == "linux" {
		l.Close()
		t.Error("somebody else can claim the port while the proxy refuses, and Accept would fail")
	}
	for range 2 {
		if err := p.Accept(); err != nil {
			t.Fatal(err)
		}
	}
	say(t, dial(t, p), "accepted again")
}

func TestSwallow(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		from    []proxy.Side
		reaches bool // whether the server hears the client
	}{
		{"client", []proxy.Side{proxy.Client}, false},
		{"server", []proxy.Side{proxy.Server}, true},
		{"both", []proxy.Side{proxy.Client, proxy.Server}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, heard := start(t)
			c := dial(t, p)
			say(t, c, "before")
			p.Swallow(tt.from...)
			mustWrite(t, c, "lost\n")
			silent(t, c)
			if tt.reaches {
				heard.wait(t, "lost")
			} else if heard.has("lost") {
				t.Error("the server heard what was swallowed")
			}
			p.Swallow()
			say(t, c, "after")
		})
	}
}

func TestNewConnectionIntoBlackHole(t *testing.T) {
	t.Parallel()
	p, err := proxy.Start("127.0.0.1:1") // nobody listens there
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	p.Swallow(proxy.Client, proxy.Server)
	c := dial(t, p)
	mustWrite(t, c, "hello\n")
	silent(t, c)
	p.Swallow()
	if _, err := dial(t, p).Read(make([]byte, 1)); err == nil || isTimeout(err) {
		t.Errorf("read from a proxy without target: %v, want the connection closed", err)
	}
}

func TestHold(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		from    []proxy.Side
		reaches bool // whether the server hears the client meanwhile
	}{
		{"client", []proxy.Side{proxy.Client}, false},
		{"server", []proxy.Side{proxy.Server}, true},
		{"both", []proxy.Side{proxy.Client, proxy.Server}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, heard := start(t)
			c := dial(t, p)
			say(t, c, "before")
			p.Hold(tt.from...)
			mustWrite(t, c, "first\n")
			silent(t, c)
			mustWrite(t, c, "second\n")
			silent(t, c)
			if tt.reaches {
				heard.wait(t, "second")
			} else if heard.has("first") {
				t.Error("the server heard what was held")
			}
			p.Hold(tt.from...) // again changes nothing
			silent(t, c)
			p.Hold()
			expect(t, c, "first")
			expect(t, c, "second")
			say(t, c, "after")
		})
	}
}

func TestHeldRequestOfClientThatGaveUp(t *testing.T) {
	t.Parallel()
	p, heard := start(t)
	c := dial(t, p)
	say(t, c, "before")
	p.Hold(proxy.Client, proxy.Server)
	mustWrite(t, c, "late\n")
	c.Close()
	next := dial(t, p) // the way back is as blocked as the old one
	mustWrite(t, next, "never\n")
	silent(t, next)
	p.Hold()
	heard.wait(t, "late")
	say(t, dial(t, p), "after")
	if heard.has("never") {
		t.Error("a connection made while both sides were held was forwarded")
	}
}

func TestCutAndCloseWhileHeld(t *testing.T) {
	t.Parallel()
	p, heard := start(t)
	c := dial(t, p)
	say(t, c, "before")
	p.Hold(proxy.Client)
	mustWrite(t, c, "held\n")
	silent(t, c)
	p.Cut()
	if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("read after Cut: %v, want a reset", err)
	}
	for p.Open() != 0 { // the link does not wait for the end of Hold
		runtime.Gosched()
	}
	p.Hold()
	d := dial(t, p)
	say(t, d, "after")
	if heard.has("held") {
		t.Error("the server heard a connection that was cut")
	}
	p.Hold(proxy.Server)
	mustWrite(t, d, "x\n") // Close must not wait for its reply
}

func TestDelay(t *testing.T) {
	t.Parallel()
	p, _ := start(t)
	const d = 50 * time.Millisecond
	c := dial(t, p)
	say(t, c, "x")
	p.Delay(d)
	begin := time.Now()
	say(t, c, "there and back")
	if took := time.Since(begin); took < 2*d {
		t.Errorf("a round trip took %v, want at least %v", took, 2*d)
	}
	p.Delay(time.Hour)
	mustWrite(t, c, "held\n") // Close must not wait for it
}

func TestCutReplyAfter(t *testing.T) {
	t.Parallel()
	p, heard := start(t)
	c, other := dial(t, p), dial(t, p)
	say(t, c, "BEGIN")
	matched := p.CutReplyAfter(func(b []byte) bool { return bytes.Contains(b, []byte("COMMIT")) })
	say(t, c, "UPDATE")
	mustWrite(t, c, "COMMIT\n")
	got, err := io.ReadAll(c)
	if !errors.Is(err, syscall.ECONNRESET) || len(got) != 0 {
		t.Errorf("after COMMIT the client read %q, error %v; want a reset and no byte", got, err)
	}
	select {
	case <-matched:
	default:
		t.Error("the reply was cut and the channel is open")
	}
	if !heard.has("COMMIT") {
		t.Error("the server has not heard COMMIT")
	}
	say(t, other, "COMMIT of another connection passes: it happens once")
}

func TestHook(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		from    proxy.Side
		action  proxy.Action
		hears   bool // the server
		answers bool // the client gets the echo
		lives   bool // the connection
	}{
		{"pass", proxy.Client, proxy.Pass, true, true, true},
		{"drop from client", proxy.Client, proxy.Drop, false, false, true},
		{"drop from server", proxy.Server, proxy.Drop, true, false, true},
		{"cut request", proxy.Client, proxy.CutNow, false, false, false},
		{"cut reply seen at the server", proxy.Server, proxy.CutNow, true, false, false},
		{"cut reply seen at the client", proxy.Client, proxy.CutReply, true, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, heard := start(t)
			c := dial(t, p)
			p.SetHook(func(from proxy.Side, data []byte) proxy.Action {
				if from == tt.from && bytes.Contains(data, []byte("mark")) {
					return tt.action
				}
				return proxy.Pass
			})
			say(t, c, "other bytes")
			mustWrite(t, c, "mark\n")
			switch {
			case tt.answers:
				expect(t, c, "mark")
			case tt.lives:
				silent(t, c)
				p.SetHook(nil)
				say(t, c, "still there")
			default:
				if _, err := c.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("read: %v, want a reset", err)
				}
			}
			if got := heard.has("mark"); got != tt.hears {
				t.Errorf("the server heard it: %v, want %v", got, tt.hears)
			}
		})
	}
}

func TestCloseUnderLoad(t *testing.T) {
	t.Parallel()
	for range 50 {
		p, _ := start(t)
		var wait sync.WaitGroup
		for range 8 {
			wait.Go(func() {
				for {
					c, err := net.Dial("tcp", p.Addr())
					if err != nil {
						return // closed
					}
					_, _ = c.Write([]byte("x\n"))
					_, _ = c.Read(make([]byte, 2))
					c.Close()
				}
			})
		}
		for p.Accepted() < 8 {
			p.Cut()
		}
		p.Close()
		p.Close()
		wait.Wait()
		if p.Open() != 0 {
			t.Errorf("%d connections open after Close", p.Open())
		}
		if err := p.Accept(); err == nil {
			t.Error("Accept after Close succeeded")
		}
	}
}

// lines are what an echo server has heard.
type lines struct {
	mu   sync.Mutex
	all  []string
	more chan struct{} // replaced and closed at every line
}

func (l *lines) add(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, s)
	close(l.more)
	l.more = make(chan struct{})
}

func (l *lines) has(s string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.all, s)
}

func (l *lines) wait(t *testing.T, s string) {
	t.Helper()
	for {
		l.mu.Lock()
		more, ok := l.more, slices.Contains(l.all, s)
		l.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-more:
		case <-time.After(5 * time.Second):
			t.Fatalf("the server has not heard %q within 5 s", s)
		}
	}
}

// start returns a proxy to an echo server, and what that server hears.
func start(t *testing.T) (*proxy.Proxy, *lines) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	heard := &lines{more: make(chan struct{})}
	var wait sync.WaitGroup
	wait.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wait.Go(func() { echo(c, heard) })
		}
	})
	p, err := proxy.Start(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Close()
		l.Close()
		wait.Wait()
	})
	return p, heard
}

func echo(c net.Conn, heard *lines) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		line, err := r.ReadString('\n')
		if line != "" {
			heard.add(strings.TrimSuffix(line, "\n"))
			if _, err := io.WriteString(c, line); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

func dial(t *testing.T, p *proxy.Proxy) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return c.(*net.TCPConn)
}

// say sends a line and expects its echo.
func say(t *testing.T, c net.Conn, line string) {
	t.Helper()
	mustWrite(t, c, line+"\n")
	expect(t, c, line)
}

func mustWrite(t *testing.T, c net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatalf("write %q: %v", text, err)
	}
}

func expect(t *testing.T, c net.Conn, line string) {
	t.Helper()
	got := make([]byte, len(line)+1)
	if n, err := io.ReadFull(c, got); err != nil || string(got) != line+"\n" {
		t.Fatalf("read %q, error %v; want %q", got[:n], err, line)
	}
}

// silent expects that nothing arrives for a while.
func silent(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if n, err := c.Read(make([]byte, 1)); !isTimeout(err) {
		t.Errorf("read %d bytes, error %v; want silence", n, err)
	}
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
}

func isTimeout(err error) bool {
	var e net.Error
	return errors.As(err, &e) && e.Timeout()
}

// TestAddrWhileItIsOpenedAgain: the address is safe to read at any time.
func TestAddrWhileItIsOpenedAgain(t *testing.T) {
	p, err := proxy.Start("127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	want, done := p.Addr(), make(chan struct{})
	go func() {
		defer close(done)
		for range 100 {
			if got := p.Addr(); got != want {
				t.Errorf("the address is %s, was %s", got, want)
			}
		}
	}()
	for range 20 {
		p.Refuse()
		if err := p.Accept(); err != nil {
			t.Fatal(err)
		}
	}
	<-done
}
