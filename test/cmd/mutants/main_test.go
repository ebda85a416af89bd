package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestMutantsApply: every committed mutant fits the code as it is. Whether it is
// caught is make mutants' business.
func TestMutantsApply(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	all, err := load(filepath.Join(root, "test/mutants"), "")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		if _, err := m.apply(root); err != nil {
			t.Error(err)
		}
	}
}

func TestParse(t *testing.T) {
	const good = "Breaks: rule X\nFile: a.go\nTest: ./a TestA|TestB\n-- old --\n\tx := 1\n-- new --\n\tx := 2\n"
	m, err := parse("dir/name.mutant", good)
	if err != nil {
		t.Fatal(err)
	}
	want := mutant{name: "name", breaks: "rule X", file: "a.go", pkg: "./a", run: "TestA|TestB", old: "\tx := 1", replacement: "\tx := 2"}
	if m != want {
		t.Errorf("got %+v, want %+v", m, want)
	}
	for _, bad := range []string{
		"", strings.Replace(good, "Breaks", "Break", 1), strings.Replace(good, "-- new --", "", 1),
		strings.Replace(good, " TestA|TestB", "", 1), strings.Replace(good, "File: a.go\n", "", 1),
	} {
		if _, err := parse("name", bad); err == nil {
			t.Errorf("accepted: %q", bad)
		}
	}
}
