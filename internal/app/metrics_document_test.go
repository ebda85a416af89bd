package app_test

import (
	"errors"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/google/go-cmp/cmp"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/test/port"
)

var (
	metricRow    = regexp.MustCompile("^\\| `([a-z_]+)(?:\\{([a-z]+)\\})?` \\| (gauge|counter) \\| ([^|]+) \\| ([^|]+) \\| ([^|]+) \\|$")
	metricName   = regexp.MustCompile("`(leaf_[a-z_]+)")
	metricSample = regexp.MustCompile(`^([a-z_]+)(?:\{([a-z]+)=)?`)
)

// TestMetricsDocument holds docs/METRICS.md equal to what nodes in all modes answer: name,
// type and label of each metric.
func TestMetricsDocument(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../../docs/METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for line := range strings.Lines(string(content)) {
		if m := metricRow.FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			if documented[m[1]] != "" {
				t.Errorf("%s stands in two rows", m[1])
			}
			documented[m[1]] = m[3] + " " + m[2]
		}
	}
	found := map[string]string{}
	for name, page := range metricPages(t) {
		for metric, kind := range metricsOf(page) {
			if before := found[metric]; before != "" && before != kind {
				t.Errorf("%s: %s is %q, and %q elsewhere", name, metric, kind, before)
			}
			found[metric] = kind
		}
	}
	if diff := cmp.Diff(found, documented); diff != "" {
		t.Errorf("docs/METRICS.md against /metrics (-is there +is documented):\n%s", diff)
	}
	for _, m := range metricName.FindAllStringSubmatch(string(content), -1) {
		if found[m[1]] == "" {
			t.Errorf("docs/METRICS.md names %s, which does not exist", m[1])
		}
	}
}

// metricsOf returns type and label of the metrics on a page that are Leaf's own.
func metricsOf(page string) map[string]string {
	kinds, all := map[string]string{}, map[string]string{}
	for line := range strings.Lines(page) {
		if name, kind, ok := strings.Cut(strings.TrimPrefix(line, "# TYPE "), " "); ok && strings.HasPrefix(line, "# TYPE ") {
			kinds[name] = strings.TrimSpace(kind)
		}
		if m := metricSample.FindStringSubmatch(line); m != nil && !strings.HasPrefix(m[1], "go_") && !strings.HasPrefix(m[1], "process_") {
			all[m[1]] = kinds[m[1]] + " " + m[2]
		}
	}
	return all
}

// metricPages asks a node in each mode. Together they have all metrics.
func metricPages(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	ask := func(name string, c config.Config) {
		a, _ := start(t, c)
		_, pages[name] = get(t, a, "/metrics")
	}
	both := embedded(shortDir(t))
	both.Alarm.Webhook = "http://" + port.Unused(t)
	ask("both modes", both)

	segment := embedded(shortDir(t))
	segment.Snowflake.Enable = false
	ask("segment mode", segment)

	snowflake := embedded(shortDir(t))
	snowflake.Segment.Enable = false
	snowflake.Snowflake.Registry, snowflake.Snowflake.WorkerID = "static", "7"
	ask("snowflake mode", snowflake)

	var last *app.App // of a cluster, which asks the first one for its time
	store := "sqlite:" + shortDir(t) + "/shared.db"
	for range 2 {
		c := embedded(shortDir(t))
		c.Stores = []string{store}
		c.Snowflake.Address, c.Snowflake.Force, c.Snowflake.PeerInterval = "127.0.0.1", true, time.Second
		if last == nil { // a registry that nobody declared new is waited for
			declareNew(t, c)
		}
		last, _ = start(t, c)
	}
	eventually(t, "the second node of a cluster has compared its clock", func() bool {
		_, page := get(t, last, "/metrics")
		pages["a cluster"] = page
		return strings.Contains(page, "\nleaf_snowflake_peers_answered 1\n")
	})
	for mode, absent := range map[string]string{"segment mode": "\nleaf_snowflake_", "snowflake mode": "\nleaf_segment_"} {
		if strings.Contains(pages[mode], absent) {
			t.Errorf("%s has metrics of the other mode", mode)
		}
	}
	return pages
}

// declareNew makes the tables of a database, and declares its registry new.
func declareNew(t *testing.T, c config.Config) {
	t.Helper()
	if _, err := app.ApplySchema(t.Context(), c, app.Options{}, nil); err != nil {
		t.Fatal(err)
	}
	w, done, err := app.OpenWorkers(t.Context(), c, app.Options{}, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(manage.Tell(t.Context(), w, manage.InitWorkers{}), done()); err != nil {
		t.Fatal(err)
	}
}
