package deploy_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/leaf-idgen/leaf/internal/alarm"
)

type rule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

func alerts(t *testing.T) (all []rule) {
	t.Helper()
	var file struct{ Groups []struct{ Rules []rule } }
	if err := yaml.Unmarshal(read(t, "prometheus/leaf.rules.yml"), &file); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// sections are the headings of the runbook with their text.
func sections(t *testing.T) map[string]string {
	t.Helper()
	_, runbook, _ := strings.Cut(string(read(t, "../docs/OPERATIONS.md")), "\n## Runbook\n")
	all := map[string]string{}
	for part := range strings.SplitSeq(runbook, "\n### ") {
		name, text, _ := strings.Cut(part, "\n")
		all[name] = text
	}
	return all
}

// TestRunbook: each alert leads to its section of the runbook, each alarm code has an alert,
// and no section is left over.
func TestRunbook(t *testing.T) {
	t.Parallel()
	board, err := alarm.New(alarm.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = board.Close(t.Context()) })
	codes := map[string]string{} // by expression
	for _, c := range board.Counts() {
		codes[`leaf_alarms_active{code="`+c.Code+`"} > 0`] = c.Code
	}
	found := sections(t)
	for _, a := range alerts(t) {
		text, ok := found[a.Alert]
		if !ok {
			t.Errorf("%s has no section in the runbook", a.Alert)
		}
		delete(found, a.Alert)
		for _, part := range []string{"*IDs:*", "\n1. "} {
			if !strings.Contains(text, part) && a.Alert != "LeafExhausted" { // which has a table
				t.Errorf("the section of %s has no %q", a.Alert, part)
			}
		}
		if code := codes[a.Expr]; code != "" {
			delete(codes, a.Expr)
			if !strings.HasPrefix(strings.TrimSpace(text), "Alarm `"+code+"`.") || !strings.EqualFold(a.Alert, "Leaf"+code) {
				t.Errorf("%s is about the alarm %s; its section begins %.40q", a.Alert, code, text)
			}
		}
		if want := "https://github.com/leaf-idgen/leaf/blob/main/docs/OPERATIONS.md#" + strings.ToLower(a.Alert); a.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook_url is %s, want %s", a.Alert, a.Annotations["runbook_url"], want)
		}
		if s := a.Labels["severity"]; s != "critical" && s != "warning" || a.Annotations["summary"] == "" || a.Annotations["description"] == "" || a.For == "" {
			t.Errorf("%s lacks a severity, a summary, a description or a duration: %+v", a.Alert, a)
		}
	}
	for _, code := range codes {
		t.Errorf("the alarm %s has no alert", code)
	}
	for name := range found {
		if strings.HasPrefix(name, "Leaf") {
			t.Errorf("the section %s belongs to no alert", name)
		}
	}
}

var metric = regexp.MustCompile(`leaf_[a-z_]+`)

// TestMetricsExist: each metric of an expression is in docs/METRICS.md, which a test holds equal
// to what nodes have.
func TestMetricsExist(t *testing.T) {
	t.Parallel()
	documented, names := string(read(t, "../docs/METRICS.md")), 0
	for _, a := range alerts(t) {
		for _, name := range metric.FindAllString(a.Expr, -1) {
			names++
			if base := strings.TrimSuffix(name, "_bucket"); !strings.Contains(documented, "| `"+base+"`") && !strings.Contains(documented, "| `"+base+"{") {
				t.Errorf("%s: %s does not exist", a.Alert, name)
			}
		}
	}
	if names < 20 {
		t.Errorf("only %d names were found", names)
	}
}
