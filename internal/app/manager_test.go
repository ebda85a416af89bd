package app_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/test/long"
)

// manager hears what a node tells its service manager.
type manager struct {
	conn  *net.UnixConn
	path  string
	heard []string // by await

	longest int // of all messages
}

func newManager(t *testing.T) *manager {
	t.Helper()
	path := filepath.Join(shortDir(t), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &manager{conn: conn, path: path}
}

// hear returns the lines of one message; none when nothing comes in time.
func (m *manager) hear(t *testing.T, within time.Duration) []string {
	t.Helper()
	if err := m.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	message := make([]byte, 1<<16)
	n, err := m.conn.Read(message)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	m.longest = max(m.longest, n)
	return strings.Split(string(message[:n]), "\n")
}

// await hears messages until a line begins with want, one of before included.
func (m *manager) await(t *testing.T, want string) {
	t.Helper()
	begins := func(line string) bool { return strings.HasPrefix(line, want) }
	for end := time.Now().Add(20 * time.Second); !slices.ContainsFunc(m.heard, begins); {
		if time.Now().After(end) {
			t.Fatalf("the manager did not hear %q, but %q", want, slices.Compact(m.heard))
		}
		m.heard = append(m.heard, m.hear(t, time.Second)...)
	}
}

// run runs a node under m until the result is called.
func (m *manager) run(t *testing.T, c config.Config, watchdog time.Duration, check func()) (end func()) {
	t.Helper()
	return m.runWith(t, c, app.Options{Manager: app.Manager{Watchdog: watchdog}}.WithSelfCheck(check))
}

func (m *manager) runWith(t *testing.T, c config.Config, opts app.Options) (end func()) {
	t.Helper()
	opts.Manager.Socket = m.path
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- app.Run(ctx, c, opts) }()
	end = func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		done <- nil
	}
	t.Cleanup(end)
	return end
}

// TestManagerHearsOfTheNode: systemd is told when the node serves, what it does, that it
// lives, and that it stops.
func TestManagerHearsOfTheNode(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	end := m.run(t, embedded(shortDir(t)), 300*time.Millisecond, nil)
	m.await(t, "READY=1")
	if !slices.Contains(m.heard, "WATCHDOG=1") || !slices.Contains(m.heard, "EXTEND_TIMEOUT_USEC=30000000") {
		t.Errorf("until READY=1 the manager hears %q", m.heard)
	}
	m.await(t, "STATUS=serving segment and snowflake as worker ")
	for range 3 {
		if news := m.hear(t, 10*time.Second); !slices.Contains(news, "WATCHDOG=1") || slices.Contains(news, "READY=1") {
			t.Errorf("then it hears %q", news)
		}
	}
	end()
	m.await(t, "STOPPING=1")
}

// TestManagerWaitsForAStore: while no mode serves, the manager is asked for more time and
// told why, and not that the node serves.
func TestManagerWaitsForAStore(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	c := embedded(shortDir(t))
	c.Stores = []string{"mysql://leaf@127.0.0.1:1/leaf"}
	m.run(t, c, 0, nil)
	m.await(t, "STATUS=not ready: ")
	m.await(t, "EXTEND_TIMEOUT_USEC=30000000")
	if slices.Contains(m.heard, "READY=1") || slices.Contains(m.heard, "WATCHDOG=1") {
		t.Errorf("a node without its store says %q", m.heard)
	}
}

// TestWatchdogOfEnginesThatHang: a node whose self-check does not end says nothing more, so
// that the manager restarts it.
func TestWatchdogOfEnginesThatHang(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	hang, hangs := make(chan struct{}), atomic.Bool{}
	m.run(t, embedded(shortDir(t)), 150*time.Millisecond, func() {
		if hangs.Load() {
			<-hang
		}
	})
	t.Cleanup(func() { close(hang) })
	m.await(t, "READY=1")
	hangs.Store(true)
	for range 3 { // what was on its way
		if m.hear(t, time.Second) == nil {
			return
		}
	}
	t.Error("the watchdog hears of a node whose self-check hangs")
}

// TestReadyIsToldToABusyManager: systemd may not read for a while, as in a boot, and a message
// then finds no room. READY=1 is told again, or else systemd would end a healthy node.
func TestReadyIsToldToABusyManager(t *testing.T) {
	t.Parallel()
	m := newManager(t)
	fill, err := (&net.Dialer{}).DialContext(t.Context(), "unixgram", m.path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = fill.Close() }()
	for full := error(nil); full == nil; { // until there is no room
		if err := fill.SetWriteDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		_, full = fill.Write([]byte("FILL=1"))
	}
	var log lines
	m.runWith(t, embedded(shortDir(t)), app.Options{Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	log.await(t, "state=serving")
	for range 2 { // the first may have begun before
		log.await(t, "the service manager was not told")
	}
	m.await(t, "READY=1")
}

// lines is a log of which a test awaits one line after the other.
type lines struct {
	mu   sync.Mutex
	text string
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text += string(b)
	return len(b), nil
}

// await drops what comes before the end of want.
func (l *lines) await(t *testing.T, want string) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		l.mu.Lock()
		_, after, found := strings.Cut(l.text, want)
		if found {
			l.text = after
		}
		l.mu.Unlock()
		if found {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the log has no %q", want)
		}
	}
}

// TestMessagesAreShort: systemd drops a message of 4,096 bytes or more, and with it the sign of life
// that it carries.
func TestMessagesAreShort(t *testing.T) {
	long.Plain(t)
	t.Parallel()
	m := newManager(t)
	c := embedded(shortDir(t))
	c.Segment.Enable, c.Snowflake.Registry, c.Snowflake.Addresses = false, "etcd", nil
	for port := range 300 {
		c.Snowflake.Addresses = append(c.Snowflake.Addresses, fmt.Sprintf("127.0.0.1:%d", port+1))
	}
	m.run(t, c, 300*time.Millisecond, nil)
	m.await(t, "STATUS=not ready: snowflake mode is refused")
	if m.longest >= 4096 {
		t.Errorf("a message has %d bytes", m.longest)
	}
}

// TestManagerOf reads the environment that systemd gives to a service.
func TestManagerOf(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		environ []string
		want    app.Manager
	}{
		{[]string{"HOME=/"}, app.Manager{}},
		{[]string{"NOTIFY_SOCKET=/run/systemd/notify"}, app.Manager{Socket: "/run/systemd/notify"}},
		{[]string{"NOTIFY_SOCKET=@n", "WATCHDOG_USEC=10000000", "WATCHDOG_PID=7"}, app.Manager{Socket: "@n", Watchdog: 10 * time.Second}},
		{[]string{"NOTIFY_SOCKET=@n", "WATCHDOG_USEC=10000000", "WATCHDOG_PID=8"}, app.Manager{Socket: "@n"}},
		{[]string{"NOTIFY_SOCKET=@n", "WATCHDOG_USEC=soon"}, app.Manager{Socket: "@n"}},
	} {
		if got := app.ManagerOf(tt.environ, 7); got != tt.want {
			t.Errorf("ManagerOf(%q) = %+v, want %+v", tt.environ, got, tt.want)
		}
	}
}
