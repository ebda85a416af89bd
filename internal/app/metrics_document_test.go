package app_test

import (
	"errors"
	"io"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/test/long"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/sequence"
	"github.com/leaf-idgen/leaf/internal/test/port"
)

var (
	metricRow  = regexp.MustCompile("^\\| `([a-z_]+)(?:\\{([a-z,]+)\\})?` \\| (gauge|counter|histogram) \\| ([^|]+) \\| ([^|]+) \\| ([^|]+) \\|$")
	metricName = regexp.MustCompile("`(leaf_[a-z_]+)")
)

// TestMetricsDocument holds docs/METRICS.md equal to what nodes in all modes answer: name,
// type and label of each metric.
func TestMetricsDocument(t *testing.T) {
	long.Plain(t)
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
			labels := strings.Split(m[2], ",")
			slices.Sort(labels)
			documented[m[1]] = m[3] + " " + strings.Join(labels, ",")
		}
	}
	found := map[string]string{}
	for name, page := range metricPages(t) {
		for metric, kind := range metricsOf(t, page) {
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

// metricsOf returns type and labels of the metrics on a page that are Leaf's own. It reads the
// page as Prometheus does, and fails the test for what "promtool check metrics" would complain of.
func metricsOf(t *testing.T, page string) map[string]string {
	t.Helper()
	problems, err := promlint.New(strings.NewReader(page)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	all := map[string]string{}
	for name, family := range families(t, page) {
		if strings.HasPrefix(name, "go_") || strings.HasPrefix(name, "process_") {
			continue
		}
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName())
			}
			slices.Sort(labels)
			kind := strings.ToLower(family.GetType().String()) + " " + strings.Join(labels, ",")
			if before := all[name]; before != "" && before != kind {
				t.Errorf("%s is %q and %q", name, kind, before)
			}
			all[name] = kind
		}
	}
	return all
}

func families(t *testing.T, page string) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	all, err := parser.TextToMetricFamilies(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// metricPages asks a node in each mode. Together they have all metrics.
func metricPages(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	ask := func(name string, c config.Config) {
		a, _ := start(t, c)
		pages[name] = adminPage(t, a) // as the public one, and without TLS
	}
	both := embedded(shortDir(t))
	both.Alarm.Webhook = "http://" + port.Unused(t)
	both.Trace.URL = both.Alarm.Webhook
	both.TLS, _ = certificate(t)
	ask("both modes", both)

	segment := embedded(shortDir(t))
	segment.Snowflake.Enable = false
	a, _ := start(t, segment)
	get(t, a, "/api/segment/get/leaf-segment-test") // a tag that is named
	createStrict(t, a, "strict")
	get(t, a, "/api/segment/get/strict")
	createStrict(t, a, sequence.RowName("chat", sequence.Number(1).Section()))
	get(t, a, "/v1/sequence/next/chat/1")
	_, pages["segment mode"] = get(t, a, "/metrics")

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
	until(t, "the second node of a cluster has compared its clock", func() bool {
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
	w, done, err := app.Open(t.Context(), c, app.Options{}, true, app.Registry)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(manage.Tell(t.Context(), w, manage.InitWorkers{}), done()); err != nil {
		t.Fatal(err)
	}
}

// adminPage returns the metrics as the administrator's port has them.
func adminPage(t *testing.T, a *app.App) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.AddrOf("admin")+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
