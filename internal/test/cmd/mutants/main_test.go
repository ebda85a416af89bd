package main

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func committed(t *testing.T) (root string, all []mutant) {
	t.Helper()
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	all, err = load(filepath.Join(root, "internal/test/mutants"), options{})
	if err != nil {
		t.Fatal(err)
	}
	return root, all
}

// TestMutantsApply: every committed mutant fits the code as it is. Whether it is
// caught is make mutants' business.
func TestMutantsApply(t *testing.T) {
	root, all := committed(t)
	for _, m := range all {
		if _, err := m.apply(root); err != nil {
			t.Error(err)
		}
	}
}

// TestEveryClassHasAMutant: no guarantee, no rule and no known defect of a peer goes
// without one, and at least 40 mutants stand for them.
func TestEveryClassHasAMutant(t *testing.T) {
	_, all := committed(t)
	has := map[string]int{}
	classed := 0
	for _, m := range all {
		if len(m.classes) > 0 {
			classed++
		}
		for _, c := range m.classes {
			has[c]++
		}
	}
	for _, c := range classes {
		if has[c.name] == 0 {
			t.Errorf("no mutant has the class %q: %s", c.name, c.text)
		}
	}
	if classed < 40 {
		t.Errorf("%d mutants have a class, want at least 40", classed)
	}
}

func TestClassesAreDistinct(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range classes {
		if seen[c.name] || c.text == "" || strings.ContainsAny(c.name, ";|") || strings.Contains(c.text, "|") {
			t.Errorf("class %q: %s", c.name, c.text)
		}
		seen[c.name] = true
	}
}

func TestParse(t *testing.T) {
	const good = "Breaks: a rule\nClass: rule A; Leaf#216\nTest: ./a TestA|TestB\nSim: segment 70\n-- old --\n\tx := 1\n-- new --\n\tx := 2\n"
	m, err := parse("name", "a.go", good)
	if err != nil {
		t.Fatal(err)
	}
	want := mutant{
		name: "name", breaks: "a rule", classes: []string{"rule A", "Leaf#216"}, file: "a.go",
		pkg: "./a", run: "TestA|TestB", sim: hunt{"segment", 70}, old: "\tx := 1", replacement: "\tx := 2",
	}
	if !reflect.DeepEqual(m, want) {
		t.Errorf("got %+v, want %+v", m, want)
	}
	for name, text := range map[string]string{
		"no test":  strings.Replace(good, "Test: ./a TestA|TestB\n", "", 1),
		"no class": strings.Replace(good, "Class: rule A; Leaf#216\n", "", 1),
		"no seeds": strings.Replace(good, " 70", "", 1),
		"no sim":   strings.Replace(good, "Sim: segment 70\n", "", 1),
	} {
		if _, err := parse("name", "a.go", text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, bad := range []string{
		"", strings.Replace(good, "Breaks", "Break", 1), strings.Replace(good, "-- new --", "", 1),
		strings.Replace(good, " TestA|TestB", "", 1), strings.Replace(good, "TestA|TestB", "TestA/sub", 1),
		strings.Replace(good, "rule A;", "no rule;", 1), strings.Replace(good, " 70", " 0", 1),
		strings.Replace(good, "segment 70", "everything", 1),
		strings.Replace(strings.Replace(good, "Test: ./a TestA|TestB\n", "", 1), "Sim: segment 70\n", "", 1),
	} {
		if _, err := parse("name", "a.go", bad); err == nil {
			t.Errorf("accepted: %q", bad)
		}
	}
}

// TestTable: a class without a caught mutant shows as a gap.
func TestTable(t *testing.T) {
	table := markdown([]verdict{
		{mutant: mutant{name: "one", breaks: "x", classes: []string{"rule A"}}, test: outcome{true, "TestA", 1500 * time.Millisecond}},
		{mutant: mutant{name: "two", breaks: "y", classes: []string{"rule A", "rule B"}}, test: outcome{true, "", time.Second}, sim: outcome{true, "", time.Minute}},
		{mutant: mutant{name: "three", breaks: "z"}, sim: outcome{true, "17", 250 * time.Millisecond}},
	}, time.Minute)
	for _, line := range []string{
		"tried on the 2 defects that lie in what it drives, and caught 1 of them",
		"| rule A | a regress latches the tag until repaired | one |",
		"| rule B | the own fence is durable before the first ID |  |",
		"| one | x | rule A | TestA, 1.5 s | - |",
		"| two | y | rule A, rule B | not within 1 s | not within 60 s |",
		"| three | z |  | - | 17, 0.2 s |",
	} {
		if !strings.Contains(table, line+"\n") && !strings.Contains(table, line) {
			t.Errorf("no line %q in\n%s", line, table)
		}
	}
}

func TestCaughtBy(t *testing.T) {
	const output = "seeds 1 to 3\nFAIL seed 17 after 18 seeds: ID 5 twice\nFAIL seed 18 after\n"
	if seed, ok := caughtBy(output); !ok || seed != "17" {
		t.Errorf("got %q, %v", seed, ok)
	}
	if _, ok := caughtBy("panic: boom\n"); ok {
		t.Error("a panic is no failing seed")
	}
}
