package rules_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/test/proxy"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// shortDir is a folder whose path is short enough for a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "leaf") //nolint:usetesting // the name of a test makes the path too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// settings are those of a node on free ports that looks often.
func settings(t *testing.T) config.Config {
	t.Helper()
	c := config.Default()
	c.DataDir = shortDir(t)
	c.HTTP.Addr, c.GRPC.Addr, c.RESP.Addr, c.Admin.Addr = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	c.StorePrivate, c.ConnectTimeout = true, 2*time.Second
	c.Segment.MaxWait, c.Segment.SyncInterval = 120*time.Millisecond, 200*time.Millisecond
	c.Segment.FixedStep = true
	c.Snowflake.Enable = false
	return c
}

// start runs a node until stop or the end of the test.
func start(t *testing.T, c config.Config) (a *app.App, stop func()) {
	t.Helper()
	a, err := app.New(c, app.Options{Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(func() { _ = a.Stop(context.Background()) })
	t.Cleanup(stop)
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return a, stop
}

// database returns the configuration of a node on a MariaDB of its own, with tags.
func database(t *testing.T, tags ...string) (config.Config, server.Database) {
	t.Helper()
	d := server.MariaDB(t)
	c := settings(t)
	c.Stores = []string{d.URL()}
	if _, err := app.ApplySchema(t.Context(), c, app.Options{}, nil); err != nil {
		t.Fatal(err)
	}
	db := d.Open(t)
	for _, tag := range tags {
		if _, err := db.ExecContext(t.Context(), "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES (?, 1, 10)", tag); err != nil {
			t.Fatal(err)
		}
	}
	return c, d
}

// through puts a proxy between a node and a server.
func through(t *testing.T, addr string) *proxy.Proxy {
	t.Helper()
	p, err := proxy.Start(addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// cutOff ends the connections to a server, and refuses further ones.
func cutOff(p *proxy.Proxy) {
	p.Refuse()
	p.Cut()
}

// take asks for IDs, n at once, each on a connection of its own.
func take(t *testing.T, a *app.App, path string, n int) {
	t.Helper()
	var group sync.WaitGroup
	for range n {
		group.Go(func() { ask(t, "http://"+a.Addr()+path, "") })
	}
	group.Wait()
}

// ask makes a request, whatever the answer is.
func ask(t *testing.T, url, token string) {
	t.Helper()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Error(err)
		return
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	if resp, err := transport.RoundTrip(req); err == nil {
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
}

// await asks for IDs until the page has a line.
func await(t *testing.T, p *prometheus, line string, each func()) {
	t.Helper()
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		each()
		page, _ := p.scrape()
		if strings.Contains(string(page), "\n"+line) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("no %s in\n%s", line, p.page())
		}
	}
}

func nothing() {}

// exec runs a statement.
func exec(t *testing.T, d server.Database, statement string) {
	t.Helper()
	if _, err := d.Open(t).ExecContext(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// declareNew says that no node has taken a worker ID.
func declareNew(t *testing.T, c config.Config) {
	t.Helper()
	w, done, err := app.Open(t.Context(), c, app.Options{}, true, app.Registry)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(manage.Tell(t.Context(), w, manage.InitWorkers{}), done()); err != nil {
		t.Fatal(err)
	}
}
