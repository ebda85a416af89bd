package app_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/manage"
)

// TestReload exchanges tokens and the certificate of a running node. What cannot be
// exchanged is named, and what would open the node is refused as a whole.
func TestReload(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	first, trustFirst := certificate(t)
	second, trustSecond := certificate(t)
	c.TLS, c.Auth.Tokens, c.Admin.Tokens = first, []string{"old"}, []string{"admin"}
	a, _ := start(t, c)
	shows := func(trust *tls.Config) bool {
		conn, err := (&tls.Dialer{Config: trust}).DialContext(t.Context(), "tcp", a.AddrOf("resp"))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}
	valid := func(token string) bool { return a.CheckToken(token) == nil }
	admits := func(token string) bool { return a.CheckAdminToken(token) == nil }
	if !shows(trustFirst) || shows(trustSecond) || !valid("old") || valid("new") || !admits("admin") || admits("next") {
		t.Fatal("before: another certificate or token")
	}
	for _, tt := range []struct {
		name   string
		change func(c *config.Config)
		fault  string
	}{
		{"no client token", func(c *config.Config) { c.Auth.Tokens = nil }, "auth.token: cannot be removed while the node runs"},
		{"no administrator's token", func(c *config.Config) { c.Admin.Tokens = nil }, "admin.token: cannot be removed while the node runs"},
		{"no TLS", func(c *config.Config) { c.TLS = config.TLS{} }, "cannot be switched on or off while the node runs"},
		{"no certificate in the file", func(c *config.Config) { c.TLS.Cert = second.Key }, "must be a certificate and its key"},
		{"a bad value", func(c *config.Config) { c.HTTP.MaxConns = 0 }, "http.max-conns"},
	} {
		next := c
		next.Auth.Tokens, next.Admin.Tokens, next.TLS = []string{"new"}, []string{"next"}, second
		tt.change(&next)
		if _, err := a.Reload(next); err == nil || !strings.Contains(err.Error(), tt.fault) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.fault)
		}
		if !shows(trustFirst) || !valid("old") || valid("new") || !admits("admin") || admits("next") {
			t.Errorf("%s: something has changed", tt.name)
		}
	}
	next := c
	next.Auth.Tokens, next.Admin.Tokens, next.TLS, next.Log.Level = []string{"new", "newer"}, []string{"next"}, second, "warn"
	r, err := a.Reload(next)
	if err != nil || !slices.Equal(r.Restart, []string{"log.level"}) {
		t.Fatalf("restart %q, %v", r.Restart, err)
	}
	if shows(trustFirst) || !shows(trustSecond) || valid("old") || !valid("new") || !valid("newer") {
		t.Error("after: another certificate or token")
	}
	if admits("admin") || !admits("next") || admits("new") || valid("next") {
		t.Error("after: another administrator's token")
	}
}

// TestReloadedValues: values that a reload changes count, are shown without secrets, and do not
// differ any more.
func TestReloadedValues(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.Auth.Tokens = []string{"old"}
	level := &slog.LevelVar{}
	a, _ := startWith(t, c, app.Options{Level: level})
	next := c
	next.Auth.Tokens, next.Log.Level, next.Limit.MaxWaiting, next.Segment.MaxStep = []string{"new"}, "error", 7, 5000
	next.Segment.MaxWait = time.Minute
	want := []config.Difference{{Key: "auth.token", Now: "xxxxx", Then: "xxxxx"}, {Key: "segment.max-step", Now: "1000000", Then: "5000"}, {Key: "limit.max-waiting", Now: "10000", Then: "7"}, {Key: "log.level", Now: "info", Then: "error"}}
	r, err := a.Reload(next)
	if err != nil || !slices.Equal(r.Changed, want) || !slices.Equal(r.Restart, []string{"segment.max-wait"}) {
		t.Fatalf("changed %+v, restart %q, %v", r.Changed, r.Restart, err)
	}
	if level.Level() != slog.LevelError {
		t.Errorf("the level is %v", level)
	}
	if r, err := a.Reload(next); err != nil || len(r.Changed) > 0 || !slices.Equal(r.Restart, []string{"segment.max-wait"}) {
		t.Errorf("again: changed %+v, restart %q, %v", r.Changed, r.Restart, err)
	}
}

// TestReloadDocument holds the table of docs/CONFIGURATION.md equal to the keys that a reload changes.
func TestReloadDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/CONFIGURATION.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n## What changes without a restart\n")
	_, rest, _ = strings.Cut(rest, "\n| --- | --- |\n")
	table, _, _ := strings.Cut(rest, "\n\n")
	named := map[string]bool{}
	for _, k := range config.Keys() {
		if strings.Contains(table, "`"+k.Name+"`") {
			named[k.Name] = true
		}
	}
	if diff := cmp.Diff(app.Reloadable(), slices.Sorted(maps.Keys(named))); diff != "" {
		t.Errorf("docs/CONFIGURATION.md against reloadable of reload.go (-keys +documented):\n%s", diff)
	}
}

// TestReloadedDrainDelay: a stop waits for as long as the last reload says.
func TestReloadedDrainDelay(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.DrainDelay = 3 * time.Second
	log := &lockedBuffer{}
	a, stop := startWith(t, c, app.Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	next := c
	next.DrainDelay = 0
	if r, err := a.Reload(next); err != nil || len(r.Changed) != 1 || len(r.Restart) > 0 {
		t.Fatalf("changed %+v, restart %q, %v", r.Changed, r.Restart, err)
	}
	stop()
	if strings.Contains(log.String(), "serving until clients have moved") {
		t.Errorf("the stop waited:\n%s", log)
	}
}

// TestReloadedWeight: clients find the weight of the last reload. A reload that does not change it
// leaves what an administrator has set.
func TestReloadedWeight(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.Node.Discovery = config.DiscoveryStore
	a, _ := start(t, c)
	await := func(want int) {
		t.Helper()
		until(t, fmt.Sprintf("the node is published with the weight %d", want), func() bool {
			all, err := manage.Ask(t.Context(), a.Backend(), manage.ListNodes{})
			return err == nil && len(all.Nodes) == 1 && all.Nodes[0].Weight == want
		})
	}
	await(100)
	next := c
	next.Node.Weight = 7
	if r, err := a.Reload(next); err != nil || !slices.Equal(r.Changed, []config.Difference{{Key: "node.weight", Now: "100", Then: "7"}}) {
		t.Fatalf("changed %+v, restart %q, %v", r.Changed, r.Restart, err)
	}
	await(7)
	if _, err := manage.Ask(t.Context(), a.Backend(), manage.SetWeight{Weight: 3}); err != nil {
		t.Fatal(err)
	}
	next.Limit.MaxWaiting = 9
	if _, err := a.Reload(next); err != nil {
		t.Fatal(err)
	}
	if got := app.WeightOf(a); got != 3 {
		t.Errorf("a reload that changes another key made the weight %d", got)
	}
}

// TestReloadedMetricsTags: the page of metrics names as many tags as the last reload says.
func TestReloadedMetricsTags(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	a, _ := start(t, c)
	get(t, a, "/api/segment/get/leaf-segment-test")
	for _, tags := range []int64{1, 0, 2} {
		c.Metrics.Tags = tags
		if _, err := a.Reload(c); err != nil {
			t.Fatal(err)
		}
		if _, page := get(t, a, "/metrics"); strings.Contains(page, `tag="leaf-segment-test"`) != (tags > 0) {
			t.Errorf("with metrics.tags %d:\n%s", tags, page)
		}
	}
}

// TestReloadedWebhook: alarms go to the new address, whose path is a secret. Whether there is a
// webhook at all counts after a restart.
func TestReloadedWebhook(t *testing.T) {
	t.Parallel()
	posts := make(chan string, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { posts <- r.URL.Path }))
	t.Cleanup(receiver.Close)
	c := embedded(shortDir(t))
	c.Alarm.Webhook = receiver.URL + "/old"
	a, _ := start(t, c)
	next := c
	next.Alarm.Webhook = receiver.URL + "/new"
	hidden := receiver.URL + "/xxxxx"
	r, err := a.Reload(next)
	if want := []config.Difference{{Key: "alarm.webhook", Now: hidden, Then: hidden}}; err != nil || !slices.Equal(r.Changed, want) || len(r.Restart) > 0 {
		t.Fatalf("changed %+v, restart %q, %v", r.Changed, r.Restart, err)
	}
	wrong := next
	wrong.HTTP.MaxConns = 0
	if _, err := a.Reload(wrong); err == nil { // which raises an alarm
		t.Fatal("no error")
	}
	if path := <-posts; path != "/new" {
		t.Errorf("the alarm went to %s", path)
	}
	off := next
	off.Alarm.Webhook = ""
	if r, err := a.Reload(off); err != nil || len(r.Changed) > 0 || !slices.Equal(r.Restart, []string{"alarm.webhook"}) {
		t.Errorf("without a webhook: changed %+v, restart %q, %v", r.Changed, r.Restart, err)
	}
}

// TestStopDuringAReloadThatHangs: a file that never answers, such as a named pipe or one on a
// network filesystem that is gone, keeps a reload from its end, and not the node.
func TestStopDuringAReloadThatHangs(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	hang, begun, hangup := make(chan struct{}), make(chan struct{}), make(chan os.Signal, 1)
	defer close(hang)
	ended := make(chan error, 1)
	go func() {
		ended <- app.Run(ctx, c, app.Options{Reload: hangup, Load: func() (config.Config, map[string]fs.FileInfo, error) {
			close(begun)
			<-hang
			return c, nil, nil
		}})
	}()
	hangup <- syscall.SIGHUP
	select {
	case <-begun:
	case err := <-ended:
		t.Fatalf("the node has ended: %v", err)
	}
	cancel()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("Run: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the node does not stop while the configuration is being read")
	}
}

// TestReloadThatHangsIsTold: while a file never answers, no reload ends, and an alarm says so.
func TestReloadThatHangsIsTold(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	hang, hangup := make(chan struct{}), make(chan os.Signal, 1)
	a, _ := startWith(t, c, app.Options{Reload: hangup, Load: func() (config.Config, map[string]fs.FileInfo, error) {
		<-hang
		return c, nil, nil
	}})
	go a.ReloadWhenAsked(t.Context())
	alarm := func() bool {
		return slices.ContainsFunc(a.Ready().Reasons, func(r string) bool {
			return strings.HasPrefix(r, "alarm configuration (reading): ") && strings.Contains(r, "does not answer")
		})
	}
	hangup <- syscall.SIGHUP
	until(t, "the alarm begins", alarm)
	close(hang)
	until(t, "the alarm ends", func() bool { return !alarm() })
}

// TestReloadWhileClientsMove: a node that serves on for its drain-delay, of up to ten minutes, still heeds a
// signal and a changed file: a token that was taken out of a file must not be valid until the end.
func TestReloadWhileClientsMove(t *testing.T) {
	t.Parallel()
	c := embedded(shortDir(t))
	c.DrainDelay, c.Auth.Tokens = 10*time.Minute, []string{"old"}
	next := c
	next.Auth.Tokens = []string{"new"}
	log, hangup := &lockedBuffer{}, make(chan os.Signal, 1)
	a, err := app.New(c, app.Options{
		Logger: slog.New(slog.NewTextHandler(log, nil)), Reload: hangup,
		Load: func() (config.Config, map[string]fs.FileInfo, error) { return next, nil, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	stop, cut := context.WithCancel(context.Background())
	ended := make(chan struct{})
	t.Cleanup(func() {
		cut()
		<-ended
		until(t, "the node writes nothing more", func() bool { return os.RemoveAll(c.DataDir) == nil })
	})
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	terminated, terminate := context.WithCancel(t.Context())
	terminate()
	if err := a.UntilEnd(terminated); err != nil {
		t.Fatal(err)
	}
	go func() { defer close(ended); _ = a.Stop(stop) }() // it is cut off
	until(t, "the node waits for its clients", func() bool { return strings.Contains(log.String(), "serving until clients have moved") })
	hangup <- syscall.SIGHUP
	until(t, "the configuration is read again", func() bool { return strings.Contains(log.String(), "configuration reloaded") })
	awaitStatus(t, a, "/api/segment/get/leaf-segment-test", 401)
}
