package main

import (
	"strings"
	"testing"
)

// FuzzParse: a mutant file is complete, or it is refused by its name. Nothing that
// would be searched for or run is empty.
func FuzzParse(f *testing.F) {
	const good = "Breaks: a rule\nTest: ./a TestA|TestB\n-- old --\n\tx := 1\n-- new --\n\tx := 2\n"
	f.Add(good)
	f.Add(strings.Replace(good, "Breaks", "Break", 1))
	f.Add(strings.Replace(good, "\tx := 1\n", "", 1))
	f.Add(strings.Replace(good, " TestA|TestB", "", 1))
	f.Add(strings.ReplaceAll(good, "\n", "\r\n"))
	f.Add(strings.Replace(good, "Test: ./a TestA|TestB", "Class: A; guarantee 2\nSim: any 5", 1))
	f.Add(good + "-- new --\n-- old --\n")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := parse("name", "a.go", text)
		if m.name != "name" {
			t.Errorf("it is called %q", m.name)
		}
		if err != nil {
			if !strings.Contains(err.Error(), "name") {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if m.breaks == "" || m.file == "" || m.old == "" {
			t.Errorf("%q is read as %+v", text, m)
		}
		if m.old != "" && !strings.Contains(text, m.old) || !strings.Contains(text, m.replacement) {
			t.Errorf("%q is read as %q and %q", text, m.old, m.replacement)
		}
	})
}
