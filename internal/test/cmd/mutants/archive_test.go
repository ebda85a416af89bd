package main

import (
	"strings"
	"testing"
)

const twoMutants = "=== a ===\nBreaks: x\nTest: ./a TestA\n-- old --\n1\n-- new --\n2\n" +
	"=== b ===\nBreaks: y\nSim: any\n-- old --\n3\n\n-- new --\n"

func TestParseArchive(t *testing.T) {
	all, err := parseArchive("a/x.go", twoMutants)
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v; want two", all, err)
	}
	for i, want := range []mutant{{name: "a", old: "1", replacement: "2"}, {name: "b", old: "3\n", replacement: ""}} {
		if got := all[i]; got.name != want.name || got.file != "a/x.go" || got.old != want.old || got.replacement != want.replacement {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	for name, tt := range map[string]struct{ text, want string }{
		"empty":             {"", "must begin with"},
		"text before":       {"x\n" + twoMutants, "must begin with"},
		"twice":             {strings.Replace(twoMutants, "=== b", "=== a", 1), "names must increase"},
		"in disorder":       {strings.Replace(twoMutants, "=== a", "=== c", 1), "b stands behind c"},
		"one is incomplete": {strings.Replace(twoMutants, "Breaks: y\n", "", 1), "b: Breaks or the old text"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := parseArchive("a/x.go", tt.text); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

// TestNamesOfMutants: a name stands for one mutant in all archives.
func TestNamesOfMutants(t *testing.T) {
	_, all := committed(t)
	seen := map[string]string{}
	for _, m := range all {
		if other, twice := seen[m.name]; twice {
			t.Errorf("%s is in the archives of %s and %s", m.name, other, m.file)
		}
		seen[m.name] = m.file
	}
}
