package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/server/admin"
	"github.com/leaf-idgen/leaf/internal/test/port"
	"github.com/leaf-idgen/leaf/worker"
)

// ids takes a batch of snowflake IDs over HTTP.
func ids(t *testing.T, a *app.App, n int) []int64 {
	t.Helper()
	status, body := get(t, a, "/api/snowflake/get/x?count="+strconv.Itoa(n))
	if status != 200 {
		t.Fatalf("got %d %s", status, body)
	}
	var out []int64
	for line := range strings.Lines(body) {
		id, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, id)
	}
	return out
}

func TestSnowflakeServesWithoutConfiguration(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	var all []int64
	for range 3 {
		a, stop := start(t, embedded(dir))
		if status, body := get(t, a, "/readyz"); status != 200 {
			t.Errorf("/readyz: got %d %s", status, body)
		}
		all = append(all, ids(t, a, 1000)...)
		stop()
	}
	sorted := slices.Sorted(slices.Values(all))
	if len(slices.Compact(sorted)) != 3000 || !slices.IsSorted(all) {
		t.Errorf("%d distinct IDs of 3000, in order: %v", len(slices.Compact(sorted)), slices.IsSorted(all))
	}
}

// TestDeletedDatabaseIsNotNew: the database is gone, but the directory has had a worker
// ID, so other nodes may have used the registry and may still run.
func TestDeletedDatabaseIsNotNew(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	a, stop := start(t, embedded(dir))
	ids(t, a, 1)
	stop()
	for _, name := range []string{"leaf.db", "leaf.db-wal", "leaf.db-shm", "cluster"} { // the last refuses the start, where it was written in time
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	a, _ = start(t, embedded(dir))
	mustWait(t, a)
}

// TestDatabaseMadeByACommandIsNew: nobody has issued anything between the command and
// the first node. The word of the command holds for one start.
func TestDatabaseMadeByACommandIsNew(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]func(c config.Config) (func() error, error){
		"tag list": func(c config.Config) (func() error, error) {
			_, done, err := app.Open(t.Context(), c, app.Options{}, false, app.Stores)
			return done, err
		},
		"worker list": func(c config.Config) (func() error, error) {
			_, done, err := app.Open(t.Context(), c, app.Options{}, false, app.Registry)
			return done, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := embedded(shortDir(t))
			done, err := command(c)
			if err != nil {
				t.Fatal(err)
			}
			if err := done(); err != nil {
				t.Fatal(err)
			}
			a, stop := start(t, c)
			ids(t, a, 1)
			stop()
			if _, err := os.Stat(filepath.Join(c.DataDir, "unused")); !os.IsNotExist(err) {
				t.Errorf("the word outlives the first start: %v", err)
			}
		})
	}
}

func TestDisabledModes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		off    func(c *config.Config)
		status map[string]int
	}{
		"segment": {func(c *config.Config) { c.Segment.Enable = false }, map[string]int{
			"/api/segment/get/leaf-segment-test": 501, "/cache": 501, "/db": 501, "/api/snowflake/get/x": 200, "/readyz": 200,
		}},
		"snowflake": {func(c *config.Config) { c.Snowflake.Enable = false }, map[string]int{
			"/api/segment/get/leaf-segment-test": 200, "/cache": 200, "/api/snowflake/get/x": 501, "/api/snowflake/get/x?count=5": 501, "/readyz": 200,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := embedded(shortDir(t))
			tc.off(&c)
			a, _ := start(t, c)
			for path, want := range tc.status {
				if status, body := get(t, a, path); status != want {
					t.Errorf("%s: got %d %s, want %d", path, status, body, want)
				}
			}
			b := a.Backend()
			_, tags := manage.Ask(t.Context(), b, manage.ListTags{})
			_, workers := manage.Ask(t.Context(), b, manage.ListWorkers{})
			if name == "segment" && (!errors.Is(tags, leaf.ErrDisabled) || workers != nil) || name == "snowflake" && (tags != nil || !errors.Is(workers, leaf.ErrDisabled)) {
				t.Errorf("commands: tags %v, workers %v", tags, workers)
			}
		})
	}
}

func TestNodeWithoutDatabases(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.Segment.Enable = false
	c.Snowflake.Registry, c.Snowflake.WorkerID, c.Snowflake.Margin = "static", "7", 100*time.Millisecond
	c.Snowflake.ClockJump = 3 * time.Second
	a, _ := start(t, c)
	if _, err := os.Stat(filepath.Join(c.DataDir, "leaf.db")); !os.IsNotExist(err) {
		t.Errorf("a database was made that nobody needs: %v", err)
	}
	awaitStatus(t, a, "/readyz", 200) // a static number without its file waits for a moment
	status, body := get(t, a, "/decodeSnowflakeId?snowflakeId="+strconv.FormatInt(ids(t, a, 1)[0], 10))
	var d map[string]string
	if err := json.Unmarshal([]byte(body), &d); status != 200 || err != nil || d["workerId"] != "7" {
		t.Errorf("got %d %s", status, body)
	}
}

// awaitStatus polls a node whose state depends on its clock.
func awaitStatus(t *testing.T, a *app.App, path string, want int) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		status, body := get(t, a, path)
		if status == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: got %d %s, want %d", path, status, body, want)
		}
	}
}

// TestModesDoNotDependOnOneAnother: what one mode needs is down, the other serves, and
// the node says why it is not ready.
func TestModesDoNotDependOnOneAnother(t *testing.T) {
	t.Parallel()
	t.Run("registry down", func(t *testing.T) {
		t.Parallel()
		c := embedded(shortDir(t))
		c.Snowflake.Registry, c.Snowflake.Addresses = "etcd", []string{port.Unused(t)}
		c.Snowflake.Address, c.Snowflake.Force = "127.0.0.1", true
		a, _ := start(t, c)
		if status, body := get(t, a, "/api/segment/get/leaf-segment-test"); status != 200 || body != "1" {
			t.Errorf("segment: got %d %s", status, body)
		}
		if status, body := get(t, a, "/api/snowflake/get/x"); status != 503 || !strings.Contains(body, `"code":"not_ready"`) {
			t.Errorf("snowflake: got %d %s", status, body)
		}
		for path, want := range map[string]int{"/readyz": 200, "/readyz?mode=segment": 200, "/readyz?mode=snowflake": 503} {
			if status, body := get(t, a, path); status != want {
				t.Errorf("%s: got %d %s, want %d", path, status, body, want)
			}
		}
		status, body := get(t, a, "/readyz?mode=snowflake")
		if status != 503 || !strings.Contains(body, "snowflake mode is refused") || !strings.Contains(body, "alarm registry (") {
			t.Errorf("/readyz: got %d %s", status, body)
		}
		if _, body := get(t, a, "/metrics"); !strings.Contains(body, "\nleaf_alarms_active{code=\"registry\"} 1\n") || !strings.Contains(body, "\nleaf_snowflake_worker_id -1\n") || !strings.Contains(body, "\nleaf_segment_ready 1\n") {
			t.Errorf("/metrics:\n%s", body)
		}
	})
	t.Run("database down", func(t *testing.T) {
		t.Parallel()
		c := embedded(shortDir(t))
		c.Stores = []string{"mysql://u@" + port.Unused(t) + "/leaf"}
		c.Segment.MaxWait = 20 * time.Millisecond
		c.Snowflake.Registry, c.Snowflake.WorkerID, c.Snowflake.Margin = "static", "7", 100*time.Millisecond
		c.Snowflake.ClockJump = 3 * time.Second
		a, _ := start(t, c)
		awaitStatus(t, a, "/api/snowflake/get/x", 200)
		for path, want := range map[string]int{"/api/segment/get/x": 503, "/readyz": 200, "/readyz?mode=segment": 503, "/readyz?mode=snowflake": 200} {
			if status, body := get(t, a, path); status != want {
				t.Errorf("%s: got %d %s, want %d", path, status, body, want)
			}
		}
	})
}

func TestAlarmsReachTheWebhook(t *testing.T) {
	t.Parallel()
	posts := make(chan string, 100)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		posts <- r.URL.Path + " " + string(body)
	}))
	t.Cleanup(hook.Close)
	c := embedded(shortDir(t))
	c.Snowflake.Registry, c.Snowflake.Addresses = "etcd", []string{port.Unused(t)}
	c.Snowflake.Address, c.Snowflake.Force = "127.0.0.1", true
	c.Alarm.Webhook = hook.URL + "/alarms"
	a, stop := start(t, c)
	_, port, _ := net.SplitHostPort(a.Addr())
	post := <-posts
	for _, want := range []string{"/alarms {", `"code":"registry"`, `"state":"raised"`, ":" + port + `"`} {
		if !strings.Contains(post, want) {
			t.Errorf("got %s, want %s in it", post, want)
		}
	}
	stop()
}

func TestForeignRegistryRefusesTheStart(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(c *config.Config){
		"layout":    func(c *config.Config) { c.Snowflake.Layout = "js53" },
		"epoch":     func(c *config.Config) { c.Snowflake.Layout = "leaf,epoch=1288834974658" },
		"namespace": func(c *config.Config) { c.Snowflake.Namespace = "prod" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := embedded(shortDir(t))
			a, stop := start(t, c)
			ids(t, a, 1)
			stop()
			change(&c)
			a, err := app.New(c, app.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := a.Stop(context.Background()); err != nil {
					t.Error(err)
				}
			})
			if err := a.Start(t.Context()); !errors.Is(err, worker.ErrForeign) || !errors.Is(err, leaf.ErrConflict) {
				t.Errorf("got %v, want ErrForeign", err)
			}
			if status, _ := get(t, a, "/api/snowflake/get/x"); status < 400 {
				t.Errorf("it issues: %d", status)
			}
		})
	}
}

func TestWorkersBehaveAlike(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	a, stop := start(t, embedded(dir))
	ids(t, a, 1)
	client, done, err := app.Open(t.Context(), embedded(dir), app.Options{}, false, app.Registry)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := client.(*admin.Client); !ok {
		t.Fatalf("a node runs, but the backend is %T", client)
	}
	if _, _, err := app.Open(t.Context(), embedded(dir), app.Options{}, true, app.Registry); !errors.Is(err, leaf.ErrConflict) {
		t.Errorf("the registry of a running node was opened beside it: %v", err)
	}
	var number int64
	for name, b := range map[string]manage.Backend{"node": a.Backend(), "client": client} {
		all, err := manage.Ask(t.Context(), b, manage.ListWorkers{})
		if err != nil {
			t.Fatal(err)
		}
		if len(all.Workers) != 1 || all.Registry != "sqlite" || all.Kind != "leased" || all.Namespace != "default" || all.Now == 0 {
			t.Fatalf("%s: got %+v", name, all)
		}
		w := all.Workers[0]
		number = w.Number
		want := manage.Worker{Number: number, Address: a.Addr(), State: manage.WorkerRunning, Own: true, Floor: w.Floor, Bound: w.Bound}
		if diff := cmp.Diff(want, w); diff != "" || w.Bound <= all.Now {
			t.Errorf("%s: %s", name, diff)
		}
		if err := manage.Tell(t.Context(), b, manage.InitWorkers{}); err != nil {
			t.Errorf("%s: init of a registry in use: %v", name, err)
		}
		if err := manage.Tell(t.Context(), b, manage.ReleaseWorker{Number: (number + 1) % 1024}); !errors.Is(err, leaf.ErrConflict) {
			t.Errorf("%s: release of a number that nobody holds: %v", name, err)
		}
		if err := manage.Tell(t.Context(), b, manage.ReleaseWorker{Number: 1024}); !errors.Is(err, leaf.ErrBadRequest) {
			t.Errorf("%s: release of a number outside the layout: %v", name, err)
		}
	}
	issued, err := manage.Ask(t.Context(), a.Backend(), manage.NextSnowflake{N: 3})
	if err != nil || len(issued.Ranges) == 0 {
		t.Errorf("got %v, %v", issued, err)
	}
	if clock, err := manage.Ask(t.Context(), a.Backend(), manage.ConfirmClock{}); err != nil || time.Since(clock.Now).Abs() > time.Minute {
		t.Errorf("got %v, %v", clock, err)
	}
	if err := done(); err != nil {
		t.Error(err)
	}
	stop()

	opened, done, err := app.Open(t.Context(), embedded(dir), app.Options{}, false, app.Registry)
	if err != nil {
		t.Fatal(err)
	}
	all, err := manage.Ask(t.Context(), opened, manage.ListWorkers{})
	if err != nil || len(all.Workers) != 1 || all.Workers[0].Number != number || all.Workers[0].State != manage.WorkerReleased {
		t.Errorf("after a clean stop: got %+v, %v", all, err)
	}
	if err := manage.Tell(t.Context(), opened, manage.ReleaseWorker{Number: number}); err != nil {
		t.Error(err)
	}
	if err := done(); err != nil {
		t.Error(err)
	}
}

func TestReleasedNodeClaimsAgain(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.Snowflake.Renew = 100 * time.Millisecond
	a, _ := start(t, c)
	before := ids(t, a, 100)
	all, err := manage.Ask(t.Context(), a.Backend(), manage.ListWorkers{})
	if err != nil {
		t.Fatal(err)
	}
	if err := manage.Tell(t.Context(), a.Backend(), manage.ReleaseWorker{Number: all.Workers[0].Number}); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		_, body := get(t, a, "/metrics")
		if strings.Contains(body, "\nleaf_snowflake_losses_total 1\n") && strings.Contains(body, "\nleaf_snowflake_ready 1\n") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the node did not claim again:\n%s", body)
		}
	}
	after := ids(t, a, 100)
	if all := slices.Sorted(slices.Values(slices.Concat(before, after))); len(slices.Compact(all)) != 200 {
		t.Error("an ID was issued twice")
	}
}
