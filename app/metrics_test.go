package app_test

import (
	"context"
	"regexp"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/app"
)

var (
	metricLine = regexp.MustCompile(`^(leaf_[a-z_]+)(\{[a-z]+="([^"\\]|\\.)*"\})? (-?[0-9.e+-]+)$`)
	metricHead = regexp.MustCompile(`^# (HELP|TYPE) (leaf_[a-z_]+) (.+)$`)
)

// TestMetricsAreWellFormed reads the page as Prometheus does: every name is described
// once, before its samples, and counters end in _total.
func TestMetricsAreWellFormed(t *testing.T) {
	t.Parallel()
	c := config(shortDir(t))
	c.Alarm.Webhook = "http://" + unanswered(t)
	a, err := app.New(c, app.Options{Version: "v1 \"x\" \\ \n"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	_, body := get(t, a, "/metrics")
	kinds := map[string]string{}
	samples := map[string]bool{}
	current := ""
	for line := range strings.Lines(body) {
		line = strings.TrimSuffix(line, "\n")
		if name := strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE "); strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			samples[line[:strings.LastIndexByte(line, ' ')]] = true // the library's own
			continue
		}
		if m := metricHead.FindStringSubmatch(line); m != nil {
			if m[1] == "TYPE" {
				if kinds[m[2]] != "" {
					t.Errorf("%s is described twice", m[2])
				}
				kinds[m[2]], current = m[3], m[2]
			}
			continue
		}
		m := metricLine.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("not a sample: %q", line)
		}
		switch kind := kinds[m[1]]; {
		case m[1] != current:
			t.Errorf("%s stands below %s", m[1], current)
		case samples[m[1]+m[2]]:
			t.Errorf("%s%s is there twice", m[1], m[2])
		case (kind == "counter") != strings.HasSuffix(m[1], "_total"):
			t.Errorf("%s is a %s", m[1], kind)
		}
		samples[m[1]+m[2]] = true
	}
	for _, want := range []string{`leaf_build_info{version="v1 \"x\" \\ \n"}`, `leaf_alarms_active{code="clock"}`, "leaf_alarm_webhook_dropped_total", "leaf_snowflake_inner_bound_ahead_seconds", "go_goroutines", "process_open_fds", "process_resident_memory_bytes"} {
		if !samples[want] {
			t.Errorf("%s is missing", want)
		}
	}
}
