package leaf_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var (
	workflowMake = regexp.MustCompile(`(?m)\bmake ([a-z][a-z-]*)`)
	workflowGo   = regexp.MustCompile(`golang:([0-9.]+)`)
	moduleGo     = regexp.MustCompile(`(?m)^go ([0-9]+\.[0-9]+)`)
)

// TestWorkflows: the workflows of GitHub call targets that the Makefile has, with the Go
// version of go.mod, and all that .ci/run calls.
func TestWorkflows(t *testing.T) {
	t.Parallel()
	makefile, version := read(t, "Makefile"), moduleGo.FindStringSubmatch(read(t, "go.mod"))[1]
	for _, name := range []string{"ci", "release"} {
		text := read(t, filepath.Join(".github/workflows", name+".yaml"))
		var workflow struct {
			Jobs map[string]struct {
				Steps []struct{ Run, Uses string }
			}
		}
		if err := yaml.Unmarshal([]byte(text), &workflow); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var runs strings.Builder
		for _, job := range workflow.Jobs {
			for _, step := range job.Steps {
				runs.WriteString(step.Run + "\n")
			}
		}
		for _, m := range workflowMake.FindAllStringSubmatch(runs.String(), -1) {
			if !strings.Contains(makefile, "\n"+m[1]+":") {
				t.Errorf("%s: there is no make %s", name, m[1])
			}
		}
		for _, m := range workflowMake.FindAllString(read(t, ".ci/run"), -1) {
			if !strings.Contains(runs.String(), m+"\n") {
				t.Errorf("%s does not call %s, which .ci/run calls", name, m)
			}
		}
		for _, m := range workflowGo.FindAllStringSubmatch(text, -1) {
			if m[1] != version {
				t.Errorf("%s uses Go %s, and go.mod says %s", name, m[1], version)
			}
		}
	}
	forms, err := filepath.Glob(".github/ISSUE_TEMPLATE/*.yml")
	if err != nil || len(forms) < 3 {
		t.Fatalf("%q, %v", forms, err)
	}
	for _, name := range forms {
		var form map[string]any
		if err := yaml.Unmarshal([]byte(read(t, name)), &form); err != nil || len(form) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
