package cli_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/leaf-idgen/leaf/internal/cli"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// completed returns the words with which a line goes on, in this process.
func completed(t *testing.T, environ []string, words ...string) []string {
	t.Helper()
	var out, errs bytes.Buffer
	code := cli.Run(t.Context(), cli.Process{Args: append([]string{"complete", "--"}, words...), Stdout: &out, Stderr: &errs, Environ: append([]string{"HOME=/none"}, environ...)})
	if code != 0 || errs.String() != "" {
		t.Errorf("%q: exit code %d, %s", words, code, errs.String())
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if lines[0] != "words" {
		return lines[:1]
	}
	for i := range lines {
		lines[i], _, _ = strings.Cut(lines[i], "\t")
	}
	return lines[1:]
}

// TestCompletion: what each word of a line can be.
func TestCompletion(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		line string
		want string // all words
	}{
		{"sta", "status"},
		{"tag s", "show set"},
		{"help tag s", "show set"},
		{"man", ""}, // hidden
		{"status --q", "--quiet"},
		{"status -q --mode ", "segment snowflake"},
		{"status --mode=se", "--mode=segment"},
		{"serve --log-level d", "debug"},
		{"serve --no-segment-f", "--no-segment-fixed-step"},
		{"serve --config ", "files"},
		{"verify --one-space ", "files"},
		{"bench --log-format t", "text times"},
		{"completion z", "zsh"},
		{"tag show -- --", ""},
		{"tag show ", ""}, // no node answers
		{"nothing ", ""},
		{"status --nothing=", ""},
	} {
		want := strings.Fields(tt.want)
		if got := completed(t, nil, strings.Split(tt.line, " ")...); !slices.Equal(got, want) {
			t.Errorf("leaf %s: %q, want %q", tt.line, got, want)
		}
	}
}

// TestCompletionInBash: bash completes commands, flags and the tags of the node that answers,
// and shows nothing when none does.
func TestCompletionInBash(t *testing.T) {
	t.Parallel()
	bash := server.Program(t, "bash", "bash")
	dir := dataDir(t)
	p := serve(t, dir)
	if err := waitUntilServing(dir); err != nil {
		t.Fatal(err)
	}
	for _, tag := range []string{"order", "order:eu:1", "two words"} {
		leafOK(t, "tag", "create", tag, "--data-dir", dir)
	}
	script := filepath.Join(t.TempDir(), "leaf.bash")
	if err := os.WriteFile(script, []byte(outputOf(t, "completion", "bash")), 0o600); err != nil {
		t.Fatal(err)
	}
	words := func(line string) string {
		cmd := exec.CommandContext(context.Background(), bash, "--norc", "-c", `source "$1"; COMP_LINE=$2; COMP_POINT=${#2}; _leaf; printf '%s\n' "${COMPREPLY[@]}"`, "-", script, line)
		cmd.Env = append(os.Environ(), "GORACE="+noExitSleep, "LEAF_DATA_DIR="+dir)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v: %s", line, err, out)
		}
		return strings.Join(strings.Split(strings.TrimSpace(string(out)), "\n"), " | ")
	}
	for _, tt := range []struct{ line, want string }{
		{"leaf ver", "verify | version"},
		{"leaf tag show o", "order | order:eu:1"},
		{"leaf tag show order:e", "eu:1"}, // bash replaces what stands after the colon
		{"leaf tag show t", `two\ words`},
		{"leaf bench --tag=or", "order | order:eu:1"},
		{"leaf bench --tag or", "order | order:eu:1"},
		{"leaf tag show --data-dir /nowhere o", ""},
	} {
		if got := words(tt.line); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.line, got, tt.want)
		}
	}
	p.end(t, syscall.SIGTERM)
	if got := words("leaf tag show o"); got != "" {
		t.Errorf("without a node: %q", got)
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Error("a file was made")
	}
}

// TestCompletionScriptsAreValid: a shell that is installed reads its script.
func TestCompletionScriptsAreValid(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		text := outputOf(t, "completion", shell)
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("%s is not installed", shell)
			continue
		}
		cmd := exec.CommandContext(context.Background(), path, "-n")
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
	}
}

// TestHelpOfACommand: leaf help COMMAND is COMMAND --help.
func TestHelpOfACommand(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"tag"}, {"tag", "create"}} {
		if got, want := outputOf(t, append([]string{"help"}, args...)...), outputOf(t, append(slices.Clone(args), "--help")...); got != want {
			t.Errorf("leaf help %q: %s", args, got)
		}
	}
}

// TestManualPages: every command has a page that man shows without a complaint, with all of its
// flags.
func TestManualPages(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "man")
	outputOf(t, "man", folder)
	pages, err := filepath.Glob(filepath.Join(folder, "leaf*.1"))
	if err != nil || len(pages) < 25 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for _, page := range pages {
		content, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, section := range []string{"NAME", "SYNOPSIS", "DESCRIPTION"} {
			if !strings.Contains(string(content), ".SH \""+section+"\"\n") {
				t.Errorf("%s has no %s", filepath.Base(page), section)
			}
		}
	}
	status, err := os.ReadFile(filepath.Join(folder, "leaf-status.1"))
	if err != nil || !strings.Contains(string(status), `\-\-admin\-token\-file=FILE`) {
		t.Errorf("leaf-status.1 lacks a flag: %v", err)
	}
	t.Run("groff", func(t *testing.T) {
		groff := server.Program(t, "groff", "groff-base")
		out, err := exec.CommandContext(t.Context(), groff, append([]string{"-man", "-Tutf8", "-ww", "-z"}, pages...)...).CombinedOutput()
		if err != nil || len(out) > 0 {
			t.Errorf("groff: %v: %s", err, out)
		}
	})
}
