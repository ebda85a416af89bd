package app_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
)

// manager hears what a node tells its service manager.
type manager struct {
	conn  *net.UnixConn
	path  string
	heard []string // by await
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
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- app.Run(ctx, c, app.Options{Manager: app.Manager{Socket: m.path, Watchdog: watchdog}}.WithSelfCheck(check))
	}()
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
