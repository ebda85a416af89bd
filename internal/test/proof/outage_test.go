package proof_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// TestDatabaseOutage: the database is killed under load. The tag whose range lasts
// does not notice; the others get 503 at their deadline, without spinning; all are
// back within a second of the database's first accepted query.
func TestDatabaseOutage(t *testing.T) {
	t.Parallel()
	outage := long.Load(5*time.Second, 60*time.Second)
	for name, own := range map[string]func(testing.TB) *server.Instance{"MariaDB": server.OwnMariaDB, "PostgreSQL": server.OwnPostgres} {
		t.Run(name, func(t *testing.T) {
			db := own(t)
			mustLeaf(t, "schema", "apply", "--store", db.URL())
			mustLeaf(t, "tag", "create", "lasting", "--step", "1000000", "--store", db.URL())
			mustLeaf(t, "tag", "create", "short", "--step", "10", "--fixed-step", "--store", db.URL())
			n := newNode(t, "n", db.URL())
			n.start(t)
			w := newWatch(n)
			for _, tag := range []string{"lasting", "short"} {
				w.untilServed(t, tag, 10*time.Second)
			}

			db.Kill()
			before, start := n.cpu(t), time.Now()
			ctx, stop := context.WithTimeout(t.Context(), outage)
			defer stop()
			var clients sync.WaitGroup
			for range 4 {
				clients.Go(func() { w.ask(ctx, "lasting", 20*time.Millisecond) })
				clients.Go(func() { w.ask(ctx, "short", 0) })
			}
			clients.Wait()
			used, elapsed := n.cpu(t)-before, time.Since(start)
			lasting, short := w.outcome("lasting"), w.outcome("short")
			t.Logf("outage of %v: lasting %d ok, %d failed; short %d ok, %d refused after %v to %v; processor %v", elapsed.Round(time.Millisecond),
				lasting.ok, lasting.failed, short.ok, short.failed, short.fastest, short.slowest, used)
			if lasting.failed > 0 || lasting.ok < 50 {
				t.Errorf("the tag with stock: %d served, %d failed; want all served", lasting.ok, lasting.failed)
			}
			if short.failed == 0 || short.other > 0 || short.ok > 100 {
				t.Errorf("the tag without stock: %+v; want 503 only, once the stock is gone", short)
			}
			// The wait is one second by default; a busy machine may add to it.
			if short.fastest < 900*time.Millisecond || short.slowest > 3*time.Second {
				t.Errorf("503 came after %v to %v, want about 1 s", short.fastest, short.slowest)
			}
			if used > elapsed/2 {
				t.Errorf("%v of processor time in %v: spinning", used, elapsed)
			}

			if err := db.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			back := time.Now()
			for _, tag := range []string{"short", "lasting"} {
				w.untilServed(t, tag, 10*time.Second)
			}
			if d := time.Since(back); d > time.Second {
				t.Errorf("served %v after the database answered, want at most 1 s", d)
			} else {
				t.Logf("served %v after the database answered", d)
			}
		})
	}
}

// TestStartedWithTheDatabaseDown: alive, not ready, 503 and not 404; serving within
// a second of the database's first accepted query.
func TestStartedWithTheDatabaseDown(t *testing.T) {
	t.Parallel()
	for name, own := range map[string]func(testing.TB) *server.Instance{"MariaDB": server.OwnMariaDB, "PostgreSQL": server.OwnPostgres} {
		t.Run(name, func(t *testing.T) {
			db := own(t)
			mustLeaf(t, "schema", "apply", "--store", db.URL())
			mustLeaf(t, "tag", "create", "order", "--store", db.URL())
			db.Kill()
			n := newNode(t, "n", db.URL())
			n.start(t)
			c := newClient()
			for path, want := range map[string]int{
				"/healthz": 200, "/readyz": 503, "/api/segment/get/order": 503, "/api/segment/get/no-such-tag": 503,
				"/api/snowflake/get/x": 501,
			} {
				resp, err := c.Get(n.address() + path)
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
				if resp.StatusCode != want {
					t.Errorf("%s answers %d, want %d", path, resp.StatusCode, want)
				}
				if want == http.StatusServiceUnavailable && path != "/readyz" && resp.Header.Get("Retry-After") == "" {
					t.Errorf("%s: no Retry-After", path)
				}
			}
			if err := db.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			back := time.Now()
			newWatch(n).untilServed(t, "order", 10*time.Second)
			if d := time.Since(back); d > time.Second {
				t.Errorf("served %v after the database answered, want at most 1 s", d)
			}
		})
	}
}

// watch asks a node for IDs and keeps count of what happened.
type watch struct {
	n   *node
	c   *http.Client
	ids *ledger

	mu  sync.Mutex
	out map[string]outcome
}

type outcome struct {
	ok, failed, other int // 200, 503, anything else
	fastest, slowest  time.Duration
}

func newWatch(n *node) *watch {
	return &watch{n: n, c: newClient(), ids: newLedger(), out: map[string]outcome{}}
}

func (w *watch) outcome(tag string) outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out[tag]
}

// ask asks for one ID after another until ctx ends; every starts them this far
// apart at the least.
func (w *watch) ask(ctx context.Context, tag string, every time.Duration) {
	for ctx.Err() == nil {
		start := time.Now()
		status, got, err := get(context.WithoutCancel(ctx), w.c, w.n, tag, 1)
		d := time.Since(start)
		w.ids.add(tag, got)
		w.mu.Lock()
		o := w.out[tag]
		switch {
		case err == nil && status == http.StatusOK:
			o.ok++
		case err == nil && status == http.StatusServiceUnavailable:
			o.failed++
			if o.fastest == 0 || d < o.fastest {
				o.fastest = d
			}
			o.slowest = max(o.slowest, d)
		default:
			o.other++
		}
		w.out[tag] = o
		w.mu.Unlock()
		time.Sleep(max(0, every-d)) // the pace of the load
	}
}

// untilServed asks until an ID comes.
func (w *watch) untilServed(t *testing.T, tag string, limit time.Duration) {
	t.Helper()
	waitFor(t, limit, "ID of tag "+tag, func() bool {
		status, got, err := get(t.Context(), w.c, w.n, tag, 1)
		w.ids.add(tag, got)
		return err == nil && status == http.StatusOK
	})
}
