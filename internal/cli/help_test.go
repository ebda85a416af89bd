package cli_test

import (
	"bytes"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/cli"
)

// outputOf runs a command that must succeed, in this process, and returns what it prints.
func outputOf(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := cli.Run(t.Context(), cli.Process{Args: args, Stdout: &out, Stderr: &errs, Environ: []string{"HOME=/home/me", patient}}); code != 0 {
		t.Fatalf("leaf %s: exit code %d, %s", strings.Join(args, " "), code, errs.String())
	}
	return out.String()
}

// TestVersion: the version is printed however it is asked for.
func TestVersion(t *testing.T) {
	t.Parallel()
	want := outputOf(t, "version")
	for _, ask := range []string{"--version", "-v"} {
		if out := outputOf(t, ask); out != want || !strings.HasPrefix(out, "leaf ") {
			t.Errorf("leaf %s: %q, and leaf version: %q", ask, out, want)
		}
	}
}

// TestHelpNamesEveryTable: schema apply says what each table that it creates is for.
func TestHelpNamesEveryTable(t *testing.T) {
	t.Parallel()
	help := strings.Fields(strings.NewReplacer(",", " ", ".", " ").Replace(outputOf(t, "schema", "apply", "--help")))
	tables := regexp.MustCompile(`CREATE TABLE IF NOT EXISTS (\w+)`).FindAllStringSubmatch(outputOf(t, "schema", "print", "--dialect", "mysql"), -1)
	if len(tables) < 5 {
		t.Fatalf("only %d tables are printed", len(tables))
	}
	for _, table := range tables {
		if !slices.Contains(help, table[1]) {
			t.Errorf("leaf schema apply --help does not name %s", table[1])
		}
	}
}

// TestReadmeNamesCommandsWithoutJSON: the README says which commands have no --json.
func TestReadmeNamesCommandsWithoutJSON(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	sentence := regexp.MustCompile("each but (.*) has `--json`").FindSubmatch(readme)
	if sentence == nil {
		t.Fatal("README.md has no sentence about --json")
	}
	var named, without []string
	for _, m := range regexp.MustCompile("`([a-z -]+)`").FindAllSubmatch(sentence[1], -1) {
		named = append(named, string(m[1]))
	}
	_, list, _ := strings.Cut(outputOf(t, "--help"), "\nCommands:\n")
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z][a-z-]*(?: [a-z][a-z-]*)?)  `).FindAllStringSubmatch(list, -1) {
		if !strings.Contains(outputOf(t, append(strings.Fields(m[1]), "--help")...), "--json") {
			without = append(without, m[1])
		}
	}
	slices.Sort(named)
	slices.Sort(without)
	if !slices.Equal(named, without) {
		t.Errorf("the README says that %q have no --json; these have none: %q", named, without)
	}
}
