package app_test

import (
	"context"
	"errors"
	"fmt"
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

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/server/admin"
	"github.com/leaf-idgen/leaf/internal/test/port"
	"github.com/leaf-idgen/leaf/segment"
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
	a, err := app.New(c, app.Options{})
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
		t.Errorf("after a clean restart: got %s, want 3, since the rest was given back", body)
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
	c.HTTP.Addr = taken.Addr().String()
	_, err = app.New(c, app.Options{})
	if err == nil || !strings.Contains(err.Error(), "http.addr") || !strings.Contains(err.Error(), "address already in use") {
		t.Errorf("got %v", err)
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
	a, err := app.New(c, app.Options{Logger: app.NewLogger(&out, c.Log)})
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

// backends are the three ways to reach the same thing.
func backends(t *testing.T) map[string]manage.Backend {
	t.Helper()
	nodeDir, clientDir, offlineDir := shortDir(t), shortDir(t), shortDir(t)
	node, _ := start(t, embedded(nodeDir))
	start(t, embedded(clientDir))
	all := map[string]manage.Backend{"node": node.Backend()}
	for name, dir := range map[string]string{"client": clientDir, "offline": offlineDir} {
		b, done, err := app.OpenBackend(t.Context(), embedded(dir), app.Options{}, false)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := done(); err != nil {
				t.Error(err)
			}
		})
		all[name] = b
	}
	if _, ok := all["client"].Caller.(*admin.Client); !ok {
		t.Fatalf("a node runs, but the backend is %T", all["client"])
	}
	return all
}

func TestBackendsBehaveAlike(t *testing.T) {
	t.Parallel()
	for name, b := range backends(t) {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			created, err := b.CreateTag(ctx, segment.NewRow{Tag: "order", Start: 100, Step: 1000, Description: "d", Options: segment.Options{MaxStep: 5000}})
			if err != nil {
				t.Fatal(err)
			}
			want := manage.Tag{Name: "order", MaxID: 100, Step: 1000, Description: "d", Options: segment.Options{MaxStep: 5000}, UpdateTime: created.UpdateTime, State: manage.TagOK}
			if diff := cmp.Diff(want, created); diff != "" {
				t.Errorf("created:\n%s", diff)
			}
			if _, err := b.CreateTag(ctx, segment.NewRow{Tag: "order", Start: 1, Step: 10}); !errors.Is(err, leaf.ErrConflict) {
				t.Errorf("second create: got %v, want ErrConflict", err)
			}
			if _, err := b.CreateTag(ctx, segment.NewRow{Tag: "bad", Start: 1, Step: 0}); !errors.Is(err, leaf.ErrBadRequest) {
				t.Errorf("step 0: got %v, want ErrBadRequest", err)
			}
			ranges, err := b.Next(ctx, "order", 3)
			if diff := cmp.Diff([]leaf.Range{{Lo: 100, Hi: 103}}, ranges); err != nil || diff != "" {
				t.Errorf("next: %v\n%s", err, diff)
			}
			if _, err := b.Next(ctx, "nope", 1); !errors.Is(err, leaf.ErrUnknownTag) {
				t.Errorf("next of an unknown tag: got %v", err)
			}
			tag, err := b.Tag(ctx, "order")
			if err != nil || tag.Fence != 1100 || tag.MaxID != 1100 || tag.State != manage.TagOK {
				t.Errorf("tag: got %+v, %v, want fence and max_id 1100", tag, err)
			}

			low, high, step := int64(50), int64(2000), int64(20)
			if _, err := b.SetTag(ctx, "order", segment.Change{MaxID: &low}); !errors.Is(err, leaf.ErrConflict) {
				t.Errorf("lower max_id: got %v, want ErrConflict", err)
			}
			if _, err := b.SetTag(ctx, "order", segment.Change{}); !errors.Is(err, leaf.ErrBadRequest) {
				t.Errorf("empty change: got %v, want ErrBadRequest", err)
			}
			if tag, err = b.SetTag(ctx, "order", segment.Change{MaxID: &high, Step: &step}); err != nil || tag.MaxID != 2000 || tag.Step != 20 {
				t.Errorf("set: got %+v, %v", tag, err)
			}
			if _, err := b.SetTag(ctx, "nope", segment.Change{Step: &step}); !errors.Is(err, leaf.ErrUnknownTag) {
				t.Errorf("set an unknown tag: got %v", err)
			}

			if _, err := b.RepairTag(ctx, "order", 5); !errors.Is(err, leaf.ErrConflict) {
				t.Errorf("repair below the fence: got %v, want ErrConflict", err)
			}
			if plan, err := b.PlanRepair(ctx, "order", 5); err != nil || !strings.Contains(plan.Refused, "use ") || plan.First != 0 {
				t.Errorf("plan of a repair below the fence: got %+v, %v", plan, err)
			}
			if plan, err := b.PlanRepair(ctx, "order", 5000); err != nil || plan.Row != 2000 || plan.Above != 5000 || plan.First != 5001 || plan.Refused != "" {
				t.Errorf("plan: got %+v, %v", plan, err)
			}
			if tag, err = b.Tag(ctx, "order"); err != nil || tag.MaxID != 2000 {
				t.Errorf("after a plan: got %+v, %v", tag, err)
			}
			if repaired, err := b.RepairTag(ctx, "order", 5000); err != nil || repaired.MaxID != 5001 || repaired.Plan.Row != 2000 || repaired.Plan.First != 5001 {
				t.Errorf("repair: got %+v, %v", repaired, err)
			}

			tags, err := b.Tags(ctx)
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, tag := range tags {
				names = append(names, tag.Name)
			}
			if diff := cmp.Diff([]string{"leaf-segment-test", "order"}, names); diff != "" {
				t.Error(diff)
			}

			if err := b.DeleteTag(ctx, "order"); err != nil {
				t.Error(err)
			}
			if err := b.DeleteTag(ctx, "order"); !errors.Is(err, leaf.ErrUnknownTag) {
				t.Errorf("second delete: got %v", err)
			}
			if _, err := b.Next(ctx, "order", 1); !errors.Is(err, leaf.ErrUnknownTag) {
				t.Errorf("next of a deleted tag: got %v", err)
			}
			// The numbers up to the fence are in use: the tag must not start below.
			_, err = b.CreateTag(ctx, segment.NewRow{Tag: "order", Start: 5000, Step: 1000})
			if !errors.Is(err, leaf.ErrConflict) || !strings.Contains(fmt.Sprint(err), "use --start 5001 or more") {
				t.Errorf("create below the fence: got %v", err)
			}
			if _, err = b.CreateTag(ctx, segment.NewRow{Tag: "order", Start: 5001, Step: 1000}); err != nil {
				t.Error(err)
			}
			if ranges, err = b.Next(ctx, "order", 1); err != nil || ranges[0].Lo != 5001 {
				t.Errorf("next: got %v, %v", ranges, err)
			}

			info, err := b.Info(ctx)
			if err != nil || !info.Ready || len(info.Stores) != 1 || info.PID == 0 || (info.HTTP == "") != (name == "offline") {
				t.Errorf("info: got %+v, %v", info, err)
			}
		})
	}
}

func TestOfflineKeepsTheListOfRecentTags(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	a, stop := start(t, embedded(dir))
	get(t, a, "/api/segment/get/leaf-segment-test")
	stop()
	path := filepath.Join(dir, "recent.json")
	before, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(before), "leaf-segment-test") {
		t.Fatalf("the engine writes another file now: %q, %v", before, err)
	}
	b, done, err := app.OpenBackend(t.Context(), embedded(dir), app.Options{}, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.CreateTag(t.Context(), segment.NewRow{Tag: "x", Start: 1, Step: 5}); err != nil {
		t.Error(err)
	}
	if _, err := b.Next(t.Context(), "x", 1); err != nil {
		t.Error(err)
	}
	tag, err := b.Tag(t.Context(), "leaf-segment-test")
	if err != nil || tag.MaxID != 2 {
		t.Errorf("got %+v, %v, want max_id 2: no range of a recent tag is loaded", tag, err)
	}
	if err := done(); err != nil {
		t.Error(err)
	}
	if after, err := os.ReadFile(path); string(after) != string(before) {
		t.Errorf("got %s, %v, want %s", after, err, before)
	}
}

func TestDemoTagStartsAboveTheFence(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	a, stop := start(t, embedded(dir))
	get(t, a, "/api/segment/get/leaf-segment-test?count=5")
	stop()
	for _, name := range []string{"leaf.db", "leaf.db-wal", "leaf.db-shm"} {
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
	if err := a.Backend().DeleteTag(t.Context(), "leaf-segment-test"); err != nil {
		t.Fatal(err)
	}
	stop()
	again, _ := start(t, embedded(dir))
	if status, body := get(t, again, "/api/segment/get/leaf-segment-test"); status != 404 {
		t.Errorf("got %d %s, want 404", status, body)
	}
}

// TestNoChangeBeforeTheBinding: a command through a node must not write into a
// database that may belong to others.
func TestNoChangeBeforeTheBinding(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.Stores = []string{"mysql://leaf@127.0.0.1:1/leaf"}
	node, _ := start(t, c)
	b := node.Backend()
	step := int64(5)
	for name, err := range map[string]error{
		"create": second(b.CreateTag(t.Context(), segment.NewRow{Tag: "x", Start: 1, Step: 5})),
		"set":    second(b.SetTag(t.Context(), "x", segment.Change{Step: &step})),
		"delete": b.DeleteTag(t.Context(), "x"),
	} {
		if !errors.Is(err, leaf.ErrNotReady) || !strings.Contains(err.Error(), "has not answered yet") {
			t.Errorf("%s: %v, want not ready before anything is sent", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestSeveralStores(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	c := embedded(dir)
	c.Stores = []string{"a=sqlite:" + filepath.Join(dir, "a.db"), "b=sqlite:" + filepath.Join(dir, "b.db")}
	c.TagRules = []string{"order*=a"}
	node, stop := start(t, c)
	b := node.Backend()
	for _, name := range []string{"order-1", "user"} {
		if _, err := b.CreateTag(t.Context(), segment.NewRow{Tag: name, Start: 1, Step: 5}); err != nil {
			t.Error(err)
		}
		if status, body := get(t, node, "/api/segment/get/"+name); status != 200 || body != "1" {
			t.Errorf("%s: got %d %s", name, status, body)
		}
	}
	tags, err := b.Tags(t.Context())
	if err != nil || len(tags) != 2 || tags[0].Store != "a" || tags[1].Store != "b" {
		t.Errorf("got %+v, %v", tags, err)
	}
	stop()

	c.TagRules = []string{"user*=a"}
	a, err := app.New(c, app.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "rule") {
		t.Errorf("another rule: got %v", err)
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := app.ApplySchema(t.Context(), c, app.Options{}, false); !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "--accept-rule") {
		t.Errorf("apply: got %v", err)
	}
	if report, err := app.ApplySchema(t.Context(), c, app.Options{}, true); err != nil {
		t.Errorf("apply with --accept-rule: got %v, %v", report, err)
	}
	_, stop = start(t, c)
	stop()
}

// TestRuleBesideRowsThatWereMovedTooEarly: the row of a tag is copied to where a new rule
// expects it, and the nodes of the old rule take ranges after that. An operator who then
// does what the texts say repeats no ID, also with a node that has no fence of its own.
func TestRuleBesideRowsThatWereMovedTooEarly(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	c := embedded(dir)
	c.Stores = []string{"a=sqlite:" + filepath.Join(dir, "a.db"), "b=sqlite:" + filepath.Join(dir, "b.db")}
	c.TagRules = []string{"order*=a"}
	c.Segment.FixedStep = true
	old, stop := start(t, c)
	if _, err := old.Backend().CreateTag(t.Context(), segment.NewRow{Tag: "user", Start: 1, Step: 5}); err != nil {
		t.Fatal(err)
	}
	a, err := sqldb.Open("sqlite:"+filepath.Join(dir, "a.db"), sqldb.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close() })
	if err := a.Create(t.Context(), segment.NewRow{Tag: "user", Start: 1, Step: 5}); err != nil {
		t.Fatal(err)
	}
	issued := map[string]bool{}
	for range 12 {
		_, id := get(t, old, "/api/segment/get/user")
		issued[id] = true
	}
	stop()

	fresh := c
	fresh.DataDir, fresh.TagRules = shortDir(t), []string{"user*=a"}
	if _, err := app.ApplySchema(t.Context(), fresh, app.Options{}, false); !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), "stop all nodes, then move the rows") {
		t.Errorf("apply: got %v", err)
	}
	_, err = app.ApplySchema(t.Context(), fresh, app.Options{}, true)
	if want := `tag "user" has max_id=13 in store "b", but max_id=1 in store "a"`; !errors.Is(err, leaf.ErrConflict) || !strings.Contains(err.Error(), want) {
		t.Errorf("apply with --accept-rule: got %v, want a conflict that says %q", err, want)
	}
	above := int64(13)
	if err := a.Update(t.Context(), "user", segment.Change{MaxID: &above}); err != nil {
		t.Fatal(err)
	}
	if _, err := app.ApplySchema(t.Context(), fresh, app.Options{}, true); err != nil {
		t.Errorf("apply with --accept-rule, and the row above: got %v", err)
	}
	node, _ := start(t, fresh)
	for range 12 {
		status, id := get(t, node, "/api/segment/get/user")
		if status != 200 || issued[id] {
			t.Fatalf("got %d %s, which was issued before: %v", status, id, issued[id])
		}
	}
}
