package cli_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/cli"
)

var (
	// helpCommand is a command in the list of leaf --help.
	helpCommand = regexp.MustCompile(`(?m)^  ([a-z][a-z-]*(?: [a-z][a-z-]*)?)  `)
	// named is a command of ours in a text, up to the end of what may be typed.
	named = regexp.MustCompile("\\bleaf ([a-z-]+)((?: [^\\s`|;#\"\\\\]+)*)")
	// namedFlag is a flag in it.
	namedFlag = regexp.MustCompile(`^--(?:no-)?([a-z][a-z-]*[a-z])`)
)

// texts calls see for each line of what people read: the documents, and the program's
// own texts.
func texts(t *testing.T, see func(path, line string)) {
	t.Helper()
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "bin" || d.Name() == "adr" || d.Name() == "test" || d.Name() == "sim" || strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2):
			return filepath.SkipDir
		case d.IsDir(), strings.HasSuffix(path, "_test.go"), strings.HasSuffix(path, "CHANGELOG.md"), strings.HasSuffix(path, "segment/router.go"): // which has a word of a fingerprint
			return nil
		case filepath.Ext(path) != ".go" && filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		for line := range strings.Lines(string(text)) {
			see(path, line)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestTextsNameCommandsThatExist: the program knows each command and each flag that a document, an
// alarm or an error names.
func TestTextsNameCommandsThatExist(t *testing.T) {
	t.Parallel()
	groups, flags := map[string]bool{}, helpOf()
	for command := range flags {
		group, _, of := strings.Cut(command, " ")
		groups[group] = groups[group] || of
	}
	seen := map[string]int{}
	texts(t, func(path, line string) {
		for _, m := range named.FindAllStringSubmatch(line, -1) {
			of, known := groups[m[1]]
			if !known {
				continue // a word of the sentence
			}
			command, rest := m[1], strings.Fields(m[2])
			if end := slices.IndexFunc(rest, func(word string) bool { return strings.HasSuffix(word, ",") }); end >= 0 {
				rest = rest[:end] // the sentence goes on
			}
			if of {
				if len(rest) == 0 || !regexp.MustCompile(`^[a-z-]+$`).MatchString(rest[0]) {
					continue // all commands of the group
				}
				command += " " + rest[0]
			}
			help, exists := flags[command]
			if !exists {
				t.Errorf("%s: there is no command %q: %s", path, "leaf "+command, line)
				continue
			}
			seen[command]++
			for _, word := range rest {
				if flag := namedFlag.FindStringSubmatch(word); flag != nil && !strings.Contains(help, "--"+flag[1]) && !strings.Contains(help, "--[no-]"+flag[1]) {
					t.Errorf("%s: leaf %s has no flag --%s: %s", path, command, flag[1], line)
				}
			}
		}
	})
	for _, command := range []string{"serve", "tag repair", "tag create", "fence rebuild", "schema apply", "worker init", "worker confirm-clock"} {
		if seen[command] == 0 {
			t.Errorf("no text names leaf %s: the test does not see what it should", command)
		}
	}
}

// TestDocumentsStartNodes: each line of a document that starts a node is a configuration
// that a node accepts, with the variables that the lines before it export. What nodes share is
// named, so that no two of them issue 1, 2, 3.
func TestDocumentsStartNodes(t *testing.T) {
	t.Parallel()
	lines, exported := 0, map[string][]string{}
	texts(t, func(path, line string) {
		if assignments, ok := strings.CutPrefix(strings.TrimSpace(line), "export LEAF_"); ok && filepath.Ext(path) == ".md" {
			assignments, _, _ = strings.Cut(assignments, "#")
			exported[path] = append(exported[path], strings.Fields("LEAF_"+assignments)...)
		}
		_, settings, ok := strings.Cut(line, "leaf serve ")
		code := strings.HasPrefix(line, "    ") || strings.HasPrefix(strings.TrimSpace(line), "$ ")
		if !ok || !code || filepath.Ext(path) != ".md" || strings.Contains(settings, "leaf.properties") {
			return
		}
		settings, _, _ = strings.Cut(settings, "#")
		args := strings.Fields(settings)
		args = slices.DeleteFunc(args, func(word string) bool { return word == "&" || strings.HasPrefix(word, "2>") })
		lines++
		var out, errs bytes.Buffer
		if code := cli.Run(t.Context(), cli.Process{Args: append([]string{"config", "check"}, args...), Stdout: &out, Stderr: &errs, Environ: append([]string{"HOME=/home/me"}, exported[path]...)}); code != 0 {
			t.Errorf("%s: %s: exit code %d, %s", path, strings.TrimSpace(line), code, &errs)
		}
	})
	if lines < 8 {
		t.Errorf("only %d lines start a node: the test does not see what it should", lines)
	}
}
