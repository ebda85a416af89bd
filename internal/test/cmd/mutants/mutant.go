package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// mutant is one deliberate defect, as internal/test/mutants/README.md describes it.
type mutant struct {
	name, breaks, file string
	classes            []string // guarantees, rules and peers' defects that it stands for
	pkg, run           string   // of the test that must fail; "" if there is none
	sim                hunt     // of the simulation that should fail
	old, replacement   string
}

// hunt says how the simulation looks for a mutant.
type hunt struct {
	mode  string // "segment", "snowflake" or "any"; "": not at all
	seeds int    // at most
}

// manySeeds is how many seeds a hunt takes if its mutant does not say.
const manySeeds = 3000

// parse reads one mutant of a source file.
func parse(name, file, text string) (mutant, error) {
	m := mutant{name: name, file: file}
	head, rest, ok1 := strings.Cut(text, "-- old --\n")
	old, replacement, ok2 := strings.Cut(rest, "-- new --\n")
	if !ok1 || !ok2 {
		return m, fmt.Errorf("%s: it needs the lines \"-- old --\" and \"-- new --\"", name)
	}
	m.old, m.replacement = strings.TrimSuffix(old, "\n"), strings.TrimSuffix(replacement, "\n")
	for line := range strings.Lines(head) {
		var err error
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Breaks":
			m.breaks = value
		case "Class":
			m.classes, err = parseClasses(value)
		case "Test":
			m.pkg, m.run, _ = strings.Cut(value, " ")
			switch {
			case m.run == "":
				err = fmt.Errorf("line %q: it must be a package and an expression of tests", line)
			case strings.Contains(m.run, "/"): // the run puts it into parentheses, where a slash begins no subtest
				err = fmt.Errorf("line %q: it must name whole tests, no subtests", line)
			}
		case "Sim":
			m.sim, err = parseHunt(value)
		case "":
		default:
			err = fmt.Errorf("unknown line %q; there are Breaks, Class, Test and Sim", line)
		}
		if err != nil {
			return m, fmt.Errorf("%s: %w", name, err)
		}
	}
	if m.breaks == "" || m.old == "" {
		return m, fmt.Errorf("%s: Breaks or the old text is missing", name)
	}
	if m.pkg == "" && m.sim.mode == "" {
		return m, fmt.Errorf("%s: it needs one of Test and Sim", name)
	}
	return m, nil
}

func parseHunt(value string) (hunt, error) {
	mode, seeds, given := strings.Cut(value, " ")
	h := hunt{mode: mode, seeds: manySeeds}
	switch mode {
	case "segment", "snowflake", "order", "period", "sequence", "any":
	default:
		return h, fmt.Errorf("line Sim: %q must be segment, snowflake, order, period, sequence or any", mode)
	}
	var err error
	if given {
		h.seeds, err = strconv.Atoi(seeds)
	}
	if err != nil || h.seeds < 1 {
		return h, fmt.Errorf("line Sim: %q must be a number of seeds, at least 1", seeds)
	}
	return h, nil
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
