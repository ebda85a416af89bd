package leaf_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	// entry is the heading of a guarantee or rule in docs/RULES.md.
	entry = regexp.MustCompile(`(?m)^### ((?:Guarantee \d+)|(?:Rule [A-Z])): .+$`)
	// citation is one mention: "rule A", "rules B and C", "guarantees 4 to 6 and 8".
	citation = regexp.MustCompile(`\b([Rr]ule)s? ([A-Z]\b(?:(?:,| and| or)+ [A-Z]\b)*)|\b([Gg]uarantee)s? (\d+\b(?:(?:,| and| or| to)+ \d+\b)*)`)
	names    = regexp.MustCompile(`[A-Z]|\d+|to`)
	// elsewhere is a citation of a document that a stranger does not have.
	elsewhere = regexp.MustCompile(`\b[Ss]pec (section|rule|guarantee|users)|users\.md|\bsection \d+ of the spec\b|peers\.md`)
	// proof is a test that docs/RULES.md names.
	proof = regexp.MustCompile("([a-z]+(?:/[a-z]+)*) `(Test[A-Za-z0-9]+)`")
)

// worthReading leaves out most lines, because a regular expression takes long.
func worthReading(line string) bool {
	return slices.ContainsFunc([]string{"ule", "uarantee", "pec", ".md"}, func(part string) bool { return strings.Contains(line, part) })
}

// cited returns the entries that a text cites, such as "Rule A" and "Guarantee 4".
func cited(text string) (all []string) {
	for _, m := range citation.FindAllStringSubmatch(text, -1) {
		kind, list := "Rule", m[2]
		if m[3] != "" {
			kind, list = "Guarantee", m[4]
		}
		var last string
		for _, n := range names.FindAllString(list, -1) {
			if n == "to" {
				continue
			}
			if from, err := strconv.Atoi(last); err == nil && strings.Contains(list, last+" to "+n) {
				to, _ := strconv.Atoi(n)
				for i := from + 1; i < to; i++ {
					all = append(all, kind+" "+strconv.Itoa(i))
				}
			}
			all = append(all, kind+" "+n)
			last = n
		}
	}
	return all
}

// TestCitations: what a comment, document or mutant cites is an entry of docs/RULES.md,
// and no text cites a document that is not in the repository.
func TestCitations(t *testing.T) {
	var entries []string
	for _, m := range entry.FindAllStringSubmatch(read(t, "docs/RULES.md"), -1) {
		entries = append(entries, m[1])
	}
	found := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin"):
			return filepath.SkipDir
		case d.IsDir() || path == "rules_test.go" || !slices.Contains([]string{".go", ".md", ".mutants", ".proto", ".java"}, filepath.Ext(path)):
			return nil
		}
		for i, line := range strings.Split(read(t, path), "\n") {
			if !worthReading(line) {
				continue
			}
			for _, name := range cited(line) {
				found++
				if !slices.Contains(entries, name) {
					t.Errorf("%s:%d cites %s, which docs/RULES.md does not have", path, i+1, name)
				}
			}
			if m := elsewhere.FindString(line); m != "" {
				t.Errorf("%s:%d cites %q, which is not in this repository", path, i+1, m)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 100 {
		t.Errorf("only %d citations were found", found)
	}
}

// TestRulesNameTheirTests: each entry of docs/RULES.md names a test, and the tests exist.
func TestRulesNameTheirTests(t *testing.T) {
	rules := read(t, "docs/RULES.md")
	starts := entry.FindAllStringSubmatchIndex(rules, -1)
	for i, at := range starts {
		end := len(rules)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		title, body := rules[at[2]:at[3]], rules[at[0]:end]
		tests := proof.FindAllStringSubmatch(body, -1)
		if len(tests) == 0 {
			t.Errorf("%s names no test", title)
		}
		if !strings.Contains(body, "\nPrevents: ") && title != "Rule L" {
			t.Errorf("%s does not say what it prevents", title)
		}
		for _, m := range tests {
			if !hasTest(t, m[1], m[2]) {
				t.Errorf("%s names %s %s, which does not exist", title, m[1], m[2])
			}
		}
	}
}

// hasTest says whether a folder has a test; "root" is the module's own.
func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	if folder == "root" {
		folder = "."
	}
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(path string) bool {
		content, err := os.ReadFile(path)
		return err == nil && strings.Contains(string(content), "\nfunc "+name+"(")
	})
}
