package rules_test

import (
	"errors"
	"io"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/model/textparse"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/leaf-idgen/leaf/internal/app"
)

const rulesFile = "../../deploy/prometheus/leaf.rules.yml"

// seen are the alerts that fired, and those of them that cleared.
var seen struct {
	sync.Mutex
	fired, cleared map[string]bool
}

func init() { seen.fired, seen.cleared = map[string]bool{}, map[string]bool{} }

// prometheus scrapes one node and evaluates the rules. Its time is synthetic: each step is half
// a minute, whatever the wall clock does, so that no test waits for a "for: 5m".
type prometheus struct {
	t      *testing.T
	target func() string // URL of the metrics, "" while there is none
	store  series
	engine *promql.Engine
	alerts []*alert
	now    time.Time
	last   map[string]labels.Labels // the series of the last scrape
}

// alert is one rule, and since when its expression has held, by the labels of its result.
type alert struct {
	rulefmt.Rule
	since map[string]time.Time
}

// state is what Prometheus calls the state of an alert that is active.
type state string

const (
	pending state = "pending"
	firing  state = "firing"
)

const interval = 30 * time.Second

func newPrometheus(t *testing.T, target func() string) *prometheus {
	t.Helper()
	p := &prometheus{t: t, target: target, store: series{}, now: time.Now()}
	p.engine = promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute})
	file, errs := rulefmt.ParseFile(rulesFile, false, model.UTF8Validation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if r.Alert == "" || r.KeepFiringFor != 0 {
				t.Fatalf("%+v: these tests know alerts with expr and for only", r)
			}
			p.alerts = append(p.alerts, &alert{Rule: r, since: map[string]time.Time{}})
		}
	}
	return p
}

// of returns a target that is a node.
func of(a *app.App) func() string {
	return func() string { return "http://" + a.AddrOf("admin") + "/metrics" }
}

// step scrapes and evaluates once.
func (p *prometheus) step() {
	p.t.Helper()
	p.now = p.now.Add(interval)
	at := p.now.UnixMilli()
	page, err := p.scrape()
	up, found := 1.0, map[string]labels.Labels{}
	if err != nil {
		up = 0
	}
	for l, v := range p.samples(page) {
		found[l.String()] = l
		p.store.add(l, at, v)
	}
	for name, l := range p.last {
		if found[name].IsEmpty() { // as Prometheus marks what a scrape has no more
			p.store.add(l, at, math.Float64frombits(value.StaleNaN))
		}
	}
	p.last = found
	p.store.add(target().Set("__name__", "up").Labels(), at, up)
	for _, a := range p.alerts {
		p.evaluate(a)
	}
}

// evaluate does for one rule what Prometheus does every half minute.
func (p *prometheus) evaluate(a *alert) {
	p.t.Helper()
	q, err := p.engine.NewInstantQuery(p.t.Context(), p.store, nil, a.Expr, p.now)
	if err != nil {
		p.t.Fatalf("%s: %v", a.Alert, err)
	}
	defer q.Close()
	result, err := q.Exec(p.t.Context()).Vector()
	if err != nil {
		p.t.Fatalf("%s: %v", a.Alert, err)
	}
	since := map[string]time.Time{}
	for _, s := range result {
		name := s.Metric.String()
		if since[name] = a.since[name]; since[name].IsZero() {
			since[name] = p.now
		}
	}
	a.since = since
}

func target() *labels.Builder {
	return labels.NewBuilder(labels.FromStrings("job", "leaf", "instance", "node"))
}

func (p *prometheus) scrape() ([]byte, error) {
	url := p.target()
	if url == "" {
		return nil, errors.New("no target")
	}
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// samples reads a page as Prometheus does.
func (p *prometheus) samples(page []byte) func(yield func(labels.Labels, float64) bool) {
	return func(yield func(labels.Labels, float64) bool) {
		if len(page) == 0 {
			return
		}
		reader, err := textparse.New(page, "text/plain", nil, textparse.ParserOptions{})
		if err != nil {
			p.t.Fatal(err)
		}
		for {
			entry, err := reader.Next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				p.t.Fatal(err)
			}
			if entry != textparse.EntrySeries {
				continue
			}
			_, _, v := reader.Series()
			var own labels.Labels
			reader.Labels(&own)
			b := target()
			own.Range(func(l labels.Label) { b.Set(l.Name, l.Value) })
			if !yield(b.Labels(), v) {
				return
			}
		}
	}
}

// state returns the alerts that are active, by name.
func (p *prometheus) state() map[string]state {
	all := map[string]state{}
	for _, a := range p.alerts {
		for _, since := range a.since {
			if p.now.Sub(since) >= time.Duration(a.For) {
				all[a.Alert] = firing
			} else if all[a.Alert] == "" {
				all[a.Alert] = pending
			}
		}
	}
	return all
}

// healthy checks that no alert is active while the node is well.
func (p *prometheus) healthy(each func()) {
	p.t.Helper()
	for range 4 {
		each()
		p.step()
	}
	for name, s := range p.state() {
		if s == firing || name != "LeafRequestsSlow" { // a busy machine is slow once
			p.t.Errorf("%s is %s on a node that is well", name, s)
		}
	}
}

// most is how many steps an alert may take, 25 minutes.
const most = 50

// fire goes on until all alerts have fired.
func (p *prometheus) fire(each func(), alerts ...string) {
	p.t.Helper()
	missing := slices.Clone(alerts)
	for range most {
		each()
		p.step()
		state := p.state()
		missing = slices.DeleteFunc(missing, func(name string) bool { return state[name] == firing })
		if len(missing) == 0 {
			p.note(seen.fired, alerts)
			return
		}
	}
	p.t.Fatalf("%q did not fire; active: %v\n%s", missing, p.state(), p.page())
}

// clear goes on until no alert is active any more.
func (p *prometheus) clear(each func(), alerts ...string) {
	p.t.Helper()
	for range most {
		each()
		p.step()
		if len(p.state()) == 0 {
			p.note(seen.cleared, alerts)
			return
		}
	}
	p.t.Fatalf("active: %v\n%s", p.state(), p.page())
}

func (p *prometheus) note(in map[string]bool, alerts []string) {
	seen.Lock()
	defer seen.Unlock()
	for _, name := range alerts {
		in[name] = true
	}
}

// page is what a message of a failure shows.
func (p *prometheus) page() string {
	page, err := p.scrape()
	if err != nil {
		return err.Error()
	}
	var own []string
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "leaf_") && !strings.HasSuffix(line, " 0\n") {
			own = append(own, line)
		}
	}
	return strings.Join(own, "")
}

// TestFileParses: the parser of rule files accepts it, as "promtool check rules" does.
func TestFileParses(t *testing.T) {
	t.Parallel()
	p := newPrometheus(t, func() string { return "" })
	if len(p.alerts) < 20 {
		t.Errorf("%d rules", len(p.alerts))
	}
}
