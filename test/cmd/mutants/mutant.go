package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mutant is one deliberate defect, as test/mutants/README.md describes it.
type mutant struct {
	name, breaks, file string
	pkg, run           string // of the test that must fail
	old, replacement   string
}

// parse reads one file.
func parse(name, text string) (mutant, error) {
	m := mutant{name: strings.TrimSuffix(filepath.Base(name), ".mutant")}
	head, rest, ok1 := strings.Cut(text, "-- old --\n")
	old, replacement, ok2 := strings.Cut(rest, "-- new --\n")
	if !ok1 || !ok2 {
		return m, fmt.Errorf("%s: it needs the lines \"-- old --\" and \"-- new --\"", name)
	}
	m.old, m.replacement = strings.TrimSuffix(old, "\n"), strings.TrimSuffix(replacement, "\n")
	for line := range strings.Lines(head) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Breaks":
			m.breaks = value
		case "File":
			m.file = value
		case "Test":
			m.pkg, m.run, _ = strings.Cut(value, " ")
		case "":
		default:
			return m, fmt.Errorf("%s: unknown line %q; there are Breaks, File and Test", name, line)
		}
	}
	if m.breaks == "" || m.file == "" || m.pkg == "" || m.run == "" || m.old == "" {
		return m, fmt.Errorf("%s: one of Breaks, File, Test (package and tests) or the old text is missing", name)
	}
	return m, nil
}

// apply returns the changed source.
func (m mutant) apply(root string) (string, error) {
	source, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		return "", fmt.Errorf("%s: its old text occurs %d times in %s, must be once; mend the mutant", m.name, n, m.file)
	}
	return strings.Replace(string(source), m.old, m.replacement, 1), nil
}

// overlay writes what go's -overlay needs into dir and returns its path.
func (m mutant) overlay(root, dir string) (string, error) {
	changed, err := m.apply(root)
	if err != nil {
		return "", err
	}
	source := filepath.Join(dir, "mutant.go")
	if err := os.WriteFile(source, []byte(changed), 0o600); err != nil {
		return "", err
	}
	content, err := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(root, m.file): source}})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, content, 0o600)
}
