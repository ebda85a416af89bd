package rules_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
)

// metricRow is a line of a table in docs/METRICS.md, which a test holds equal to what nodes have.
var metricRow = regexp.MustCompile("(?m)^\\| `([a-z_]+)(?:\\{([a-z,]+)\\})?` \\| (gauge|counter|histogram) \\|")

// documented returns the labels of each series that a node has.
func documented(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/METRICS.md")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{"up": ""}
	for _, name := range []string{"process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds", "process_max_fds"} {
		all[name] = ""
	}
	for _, m := range metricRow.FindAllStringSubmatch(string(text), -1) {
		if m[3] != "histogram" {
			all[m[1]] = m[2]
			continue
		}
		all[m[1]+"_bucket"], all[m[1]+"_sum"], all[m[1]+"_count"] = m[2]+",le", m[2], m[2]
	}
	return all
}

// check says what is wrong with an expression: metrics or labels that no node has.
func check(t *testing.T, where, expr string, have map[string]string) {
	t.Helper()
	expr = strings.ReplaceAll(expr, "$__rate_interval", "5m")
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	if err != nil {
		t.Errorf("%s: %v in %s", where, err, expr)
		return
	}
	labels := "job,instance"
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		if s, ok := n.(*parser.VectorSelector); ok {
			own, exists := have[s.Name]
			if !exists {
				t.Errorf("%s: no node has the metric %s", where, s.Name)
			}
			for _, m := range s.LabelMatchers {
				if !has("job,instance,__name__,"+own, m.Name) {
					t.Errorf("%s: %s has no label %s", where, s.Name, m.Name)
				}
			}
			labels += "," + own
		}
		return nil
	})
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		if a, ok := n.(*parser.AggregateExpr); ok {
			for _, name := range a.Grouping {
				if !has(labels, name) {
					t.Errorf("%s: nothing in %s has the label %s", where, expr, name)
				}
			}
		}
		return nil
	})
}

func has(list, name string) bool { return strings.Contains(","+list+",", ","+name+",") }

// TestRuleExpressions: the rules name metrics and labels that nodes have.
func TestRuleExpressions(t *testing.T) {
	t.Parallel()
	have := documented(t)
	for _, a := range newPrometheus(t, func() string { return "" }).alerts {
		check(t, a.Alert, a.Expr, have)
	}
}

type dashboard struct {
	ID         *int
	UID        string
	Panels     []panel
	Templating struct{ List []struct{ Name, Type string } }
}

type panel struct {
	Type, Title, Description string
	Datasource               struct{ UID string }
	FieldConfig              struct{ Defaults struct{ Unit string } }
	Targets                  []struct {
		Expr, LegendFormat string
		Datasource         struct{ UID string }
	}
}

// TestDashboard: Grafana can import it anywhere, each panel says what it shows, and each
// expression names metrics and labels that nodes have.
func TestDashboard(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../deploy/grafana/leaf.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if d.ID != nil || d.UID != "leaf" || len(d.Templating.List) != 2 || d.Templating.List[0].Type != "datasource" {
		t.Errorf("id %v, uid %q, variables %v", d.ID, d.UID, d.Templating.List)
	}
	have, used := documented(t), 0
	titles := map[string]bool{}
	for _, p := range d.Panels {
		if p.Type == "row" {
			continue
		}
		if titles[p.Title] {
			t.Errorf("two panels are called %q", p.Title)
		}
		titles[p.Title] = true
		if p.Description == "" || p.FieldConfig.Defaults.Unit == "" || p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 {
			t.Errorf("%s lacks a description, a unit, the variable data source or an expression", p.Title)
		}
		for _, target := range p.Targets {
			used++
			if target.Datasource.UID != "${datasource}" || target.LegendFormat == "" {
				t.Errorf("%s: data source %q, legend %q", p.Title, target.Datasource.UID, target.LegendFormat)
			}
			check(t, p.Title, target.Expr, have)
		}
	}
	if used < 30 {
		t.Errorf("only %d expressions were found", used)
	}
}
