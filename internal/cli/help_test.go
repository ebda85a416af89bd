package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
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

// helpOf returns what each command prints for --help. It is asked once for all tests: a command
// builds the whole command line anew.
var helpOf = sync.OnceValue(func() map[string]string {
	help := func(args ...string) string {
		var out bytes.Buffer
		if code := cli.Run(context.Background(), cli.Process{Args: append(args, "--help"), Stdout: &out, Stderr: &out, Environ: []string{"HOME=/home/me"}}); code != 0 {
			panic(fmt.Sprintf("leaf %s --help: exit code %d, %s", strings.Join(args, " "), code, &out))
		}
		return out.String()
	}
	_, list, _ := strings.Cut(help(), "\nCommands:\n")
	pages := map[string]string{}
	for _, m := range helpCommand.FindAllStringSubmatch(list, -1) {
		pages[m[1]] = help(strings.Fields(m[1])...)
	}
	return pages
})

// TestVersion: the version is printed however it is asked for.
func TestVersion(t *testing.T) {
	t.Parallel()
	want := outputOf(t, "version")
	for _, ask := range [][]string{{"--version"}, {"-v"}, {"tag", "-v"}, {"tag", "list", "--version"}} {
		if out := outputOf(t, ask...); out != want || !strings.HasPrefix(out, "leaf ") {
			t.Errorf("leaf %s: %q, and leaf version: %q", strings.Join(ask, " "), out, want)
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
