package app_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/limit"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/test/port"
)

// slowLimits is a database whose limits cannot be read before it is released.
type slowLimits struct {
	limit.Store

	released <-chan struct{}
}

func (s slowLimits) Limits(ctx context.Context) (limit.Rules, error) {
	select {
	case <-s.released:
		return s.Store.Limits(ctx)
	case <-ctx.Done():
		return limit.Rules{}, ctx.Err()
	}
}

// startSlowly begins a node whose limits cannot be read before release.
func startSlowly(t *testing.T, c config.Config) (a *app.App, release func()) {
	t.Helper()
	released := make(chan struct{})
	release = sync.OnceFunc(func() { close(released) })
	opts := app.Options{}.ReadingLimits(func(s limit.Store) limit.Store { return slowLimits{s, released} })
	a, err := app.New(c, opts)
	if err != nil {
		t.Fatal(err)
	}
	started := make(chan error, 1)
	go func() { started <- a.Start(context.Background()) }()
	t.Cleanup(func() {
		release()
		if err := errors.Join(<-started, a.Stop(context.Background())); err != nil {
			t.Error(err)
		}
	})
	return a, release
}

// blockTheDemo makes the data directory of a node whose tag and whose clients without a
// name are switched off.
func blockTheDemo(t *testing.T) config.Config {
	t.Helper()
	c := embedded(shortDir(t))
	b, done, err := app.Open(t.Context(), c, app.Options{}, false, app.Stores)
	if err != nil {
		t.Fatal(err)
	}
	on := true
	_, err = manage.Ask(t.Context(), b, manage.SetTagLimit{Name: "leaf-segment-test", LimitChange: manage.LimitChange{Blocked: &on}})
	_, err2 := manage.Ask(t.Context(), b, manage.SetClientLimit{Name: "", LimitChange: manage.LimitChange{Blocked: &on}})
	if err := errors.Join(err, err2, done()); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestASwitchHoldsFromTheStart: while the limits cannot be read, no protocol gives an ID
// of what may be switched off, and everything that needs no limits answers.
func TestASwitchHoldsFromTheStart(t *testing.T) {
	t.Parallel()
	c := blockTheDemo(t)
	c.Segment.LoadTimeout = c.ShutdownTimeout // the reading hangs for as long
	a, release := startSlowly(t, c)
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503, "/metrics": 200, "/cache": 200} {
		if status, body := get(t, a, path); status != want {
			t.Errorf("%s: %d %s, want %d", path, status, body, want)
		}
	}
	if _, body := get(t, a, "/readyz"); !strings.Contains(body, "the limits of tags and clients were not read yet") {
		t.Errorf("/readyz does not say what it waits for: %s", body)
	}
	if _, err := manage.Ask(t.Context(), a.Backend(), manage.ListLimits{}); err != nil {
		t.Errorf("administration: %v", err)
	}
	// All three servers accept, and answer when the limits are there or the wait is over.
	const tag = "leaf-segment-test"
	asks := map[string]func() string{
		"HTTP":           func() string { return fmt.Sprint(get(t, a, "/api/segment/get/"+tag)) },
		"HTTP snowflake": func() string { return fmt.Sprint(get(t, a, "/api/snowflake/get/any")) },
		"RESP":           func() string { return redis(t, a, "INCR "+tag) },
		"RESP snowflake": func() string { return redis(t, a, "LEAF.SNOWFLAKE") },
		"gRPC":           func() string { return rpc(t, a, tag) },
	}
	expect := func(when, want string) {
		t.Helper()
		for name, got := range askAll(asks) {
			if !strings.Contains(strings.ReplaceAll(strings.ToLower(got), " ", "_"), want) {
				t.Errorf("%s, %s: %s, want %q", name, when, got, want)
			}
		}
	}
	expect("before the limits are read", "limits_of_tags_and_clients_could_not_be_read")
	release()
	expect("afterwards", "switched_off_by_an_operator")
	until(t, "the node is ready", func() bool {
		status, _ := get(t, a, "/readyz")
		return status == http.StatusOK
	})
}

func askAll(asks map[string]func() string) map[string]string {
	var mu sync.Mutex
	var all sync.WaitGroup
	answers := map[string]string{}
	for name, ask := range asks {
		all.Go(func() {
			answer := ask()
			mu.Lock()
			defer mu.Unlock()
			answers[name] = answer
		})
	}
	all.Wait()
	return answers
}

// TestLimitsThatCannotBeReadEndNoService: a database that gives ranges, but not its
// limits, and one that gives nothing, delay the start by a time that is bounded.
func TestLimitsThatCannotBeReadEndNoService(t *testing.T) {
	t.Parallel()
	t.Run("only the limits", func(t *testing.T) {
		t.Parallel()
		c := embedded(shortDir(t))
		c.ConnectTimeout, c.Segment.LoadTimeout = 100*time.Millisecond, 100*time.Millisecond
		a, _ := startSlowly(t, c)
		for _, path := range []string{"/api/segment/get/leaf-segment-test", "/api/snowflake/get/any"} {
			until(t, path+" is served", func() bool {
				status, _ := get(t, a, path)
				return status == http.StatusOK
			})
		}
	})
	t.Run("the database", func(t *testing.T) {
		t.Parallel()
		c := embedded(shortDir(t))
		c.Stores = []string{"mysql://u@" + port.Unused(t) + "/leaf"}
		c.ConnectTimeout, c.Segment.LoadTimeout, c.Segment.MaxWait = 100*time.Millisecond, 100*time.Millisecond, 20*time.Millisecond
		c.Snowflake.Registry, c.Snowflake.WorkerID = "static", "7"
		a, _ := start(t, c)
		until(t, "snowflake mode answers for itself", func() bool {
			status, body := get(t, a, "/api/snowflake/get/any")
			return status == http.StatusOK || strings.Contains(body, "snowflake mode is waiting") // as a static one does at its first start
		})
		if status, body := get(t, a, "/api/segment/get/x"); status != http.StatusServiceUnavailable {
			t.Errorf("segment mode: %d %s", status, body)
		}
	})
}
