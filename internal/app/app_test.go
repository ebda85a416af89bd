package app_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/test/port"
)

// embedded is a valid one for a node on a free port in dir.
func embedded(dir string) config.Config {
	c := config.Default()
	c.DataDir = dir
	c.HTTP.Addr = "127.0.0.1:0"
	c.StorePrivate = true // tests of registries and directories need no shared database
	return c
}

// shortDir is t.TempDir with a path short enough for a socket on every system.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "leaf") //nolint:usetesting // the name of a test makes the path too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// start runs a node until stop or the end of the test.
func start(t *testing.T, c config.Config) (a *app.App, stop func()) {
	t.Helper()
	return startWith(t, c, app.Options{})
}

func startWith(t *testing.T, c config.Config, opts app.Options) (a *app.App, stop func()) {
	t.Helper()
	a, err := app.New(c, opts)
	if err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() {
		if err := a.Stop(context.Background()); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	t.Cleanup(stop)
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return a, stop
}

// get returns status and body of a path.
func get(t *testing.T, a *app.App, path string) (int, string) {
	t.Helper()
	tr := &http.Transport{}
	defer tr.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.Addr()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestFirstStartServesTheDemoTag(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	a, stop := start(t, embedded(dir))
	for _, want := range []string{"1", "2"} {
		if status, body := get(t, a, "/api/segment/get/leaf-segment-test"); status != 200 || body != want {
			t.Errorf("got %d %q, want 200 %q", status, body, want)
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/cache", "/db"} {
		if status, body := get(t, a, path); status != 200 {
			t.Errorf("%s: got %d %s", path, status, body)
		}
	}
	stop()

	again, _ := start(t, embedded(dir))
	if _, body := get(t, again, "/api/segment/get/leaf-segment-test"); body != "3" {
		t.Errorf("after a clean restart: got %s, want 3, since the rest was returned", body)
	}
}

func TestLifecycleIsIdempotent(t *testing.T) {
	t.Parallel()
	a, err := app.New(embedded(shortDir(t)), app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.Start(t.Context()), a.Start(t.Context()), a.Stop(t.Context()), a.Stop(t.Context())); err != nil {
		t.Error(err)
	}
}

func TestStopWithoutStart(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	a, err := app.New(embedded(dir), app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := a.Start(t.Context()); err == nil {
		t.Error("start after stop: no error")
	}
	_, stop := start(t, embedded(dir)) // the lock and the socket are free
	stop()
}

func TestNewUndoesItselfOnError(t *testing.T) {
	t.Parallel()
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() })
	dir := shortDir(t)
	c := embedded(dir)
	c.HTTP.Addr, c.RESP.Addr = taken.Addr().String(), taken.Addr().String()
	_, err = app.New(c, app.Options{})
	if err == nil || !strings.Contains(err.Error(), "http.addr") || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got %v", err)
	}
	if err == nil || !strings.Contains(err.Error(), "choose another --resp-addr, or --resp-addr=off") {
		t.Errorf("the second address that is taken is not named: %v", err)
	}
	_, stop := start(t, embedded(dir))
	stop()
}

func TestOneNodePerDataDirectory(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	start(t, embedded(dir))
	_, err := app.New(embedded(dir), app.Options{})
	locked, ok := errors.AsType[*datadir.LockedError](err)
	if !ok || locked.PID != os.Getpid() || !strings.Contains(err.Error(), dir) {
		t.Errorf("got %v, want a LockedError with our process and %s", err, dir)
	}
}

func TestDataDirectoryTooLongForASocket(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(shortDir(t), strings.Repeat("d", 120))
	if _, err := app.New(embedded(dir), app.Options{}); err == nil || !strings.Contains(err.Error(), "choose a shorter --data-dir") {
		t.Errorf("got %v", err)
	}
}

func TestDatabaseDownIsNotReady(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.Stores = []string{"mysql://u:hunter2@" + port.Unused(t) + "/leaf"}
	c.Segment.MaxWait = 20 * time.Millisecond
	a, _ := start(t, c)
	for path, want := range map[string]int{"/api/segment/get/x": 503, "/readyz": 503, "/db": 503, "/healthz": 200} {
		status, body := get(t, a, path)
		if status != want {
			t.Errorf("%s: got %d %s, want %d", path, status, body, want)
		}
		if strings.Contains(body, "hunter2") {
			t.Errorf("%s shows the password: %s", path, body)
		}
	}
}

func TestDatabaseThatHangsDoesNotHoldUpStop(t *testing.T) {
	t.Parallel()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() }) // accepts in the backlog, and never answers
	c := embedded(shortDir(t))
	c.Stores = []string{"mysql://u@" + ln.Addr().String() + "/leaf"}
	c.ConnectTimeout, c.Segment.LoadTimeout, c.ShutdownTimeout = 10*time.Second, 10*time.Second, 10*time.Second
	a, err := app.New(c, app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan error, 1)
	go func() { started <- a.Start(context.Background()) }()
	get(t, a, "/healthz") // answered as soon as Start is under way
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	stopped := a.Stop(ctx)
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("stop took %v", took)
	}
	if err := <-started; err == nil {
		t.Error("start: no error though it was ended")
	}
	t.Logf("stop: %v", stopped)
}

func TestLogBeginsWithWhatANewUserNeeds(t *testing.T) {
	t.Parallel()
	var out lockedBuffer
	c := embedded(shortDir(t))
	log, _ := app.NewLogger(&out, c.Log)
	a, err := app.New(c, app.Options{Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.Start(t.Context()), a.Stop(t.Context())); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range []string{
		"path=" + c.DataDir, "url=sqlite:" + c.DataDir + "/leaf.db", "url=http://" + a.Addr(),
		"try: curl http://" + a.Addr() + "/api/segment/get/leaf-segment-test",
	} {
		if !strings.Contains(lines[i], want) {
			t.Errorf("line %d: got %s, want %s", i+1, lines[i], want)
		}
	}
}

type lockedBuffer struct {
	mu  sync.Mutex
	buf strings.Builder
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := app.Run(ctx, embedded(shortDir(t)), app.Options{Logger: slog.New(slog.DiscardHandler)}); err != nil {
		t.Error(err)
	}
}

func TestDemoTagStartsAboveTheFence(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	a, stop := start(t, embedded(dir))
	get(t, a, "/api/segment/get/leaf-segment-test?count=5")
	stop()
	for _, name := range []string{"leaf.db", "leaf.db-wal", "leaf.db-shm", "cluster"} { // the last refuses the start, where it was written in time
		_ = os.Remove(filepath.Join(dir, name))
	}
	again, _ := start(t, embedded(dir))
	if status, body := get(t, again, "/api/segment/get/leaf-segment-test"); status != 200 || body != "6" {
		t.Errorf("got %d %s, want 200 6", status, body)
	}
}

// TestDeletedDemoTagStaysDeleted: if it came back it would begin anew, and another
// node that shares the file may have issued its numbers.
func TestDeletedDemoTagStaysDeleted(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	a, stop := start(t, embedded(dir))
	if err := manage.Tell(t.Context(), a.Backend(), manage.DeleteTag{Name: "leaf-segment-test"}); err != nil {
		t.Fatal(err)
	}
	stop()
	again, _ := start(t, embedded(dir))
	if status, body := get(t, again, "/api/segment/get/leaf-segment-test"); status != 404 {
		t.Errorf("got %d %s, want 404", status, body)
	}
}
