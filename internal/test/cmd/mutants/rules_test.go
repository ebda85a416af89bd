package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// heading is the heading of a guarantee or a rule in docs/RULES.md.
var heading = regexp.MustCompile(`(?m)^### (Guarantee \d+|Rule [A-Z]): `)

// TestClassesAreTheLaw: the classes of guarantees and rules are the headings of
// docs/RULES.md, each once, so that every rule has a mutant or a reason why it has none.
func TestClassesAreTheLaw(t *testing.T) {
	root, _ := committed(t)
	law, err := os.ReadFile(filepath.Join(root, "docs/RULES.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(string(law), -1) {
		want[strings.ToLower(m[1][:1])+m[1][1:]] = true
	}
	if len(want) < 30 {
		t.Fatalf("docs/RULES.md has %d guarantees and rules: the test no longer reads it", len(want))
	}
	for _, list := range [][]class{guarantees, rules} {
		for _, c := range list {
			if !want[c.name] {
				t.Errorf("class %q is not in docs/RULES.md, or it is listed twice", c.name)
			}
			delete(want, c.name)
		}
	}
	for name, reason := range withoutMutants {
		if !want[name] || reason == "" {
			t.Errorf("%s has no class because %q: it must be a rule without a class, and a reason", name, reason)
		}
		delete(want, name)
	}
	for name := range want {
		t.Errorf("docs/RULES.md has %s, internal/test/cmd/mutants/classes.go has not", name)
	}
}
