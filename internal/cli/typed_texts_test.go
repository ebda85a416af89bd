package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/segment"
)

// typedBy says which test types each command that an alarm, an error or an output names,
// from that text or as that text has it. A name without a folder is one of this package.
var typedBy = map[string]string{
	"drain":                      "TestScripts", // drain.txtar
	"fence rebuild":              "TestScripts", // fence.txtar
	"limit set":                  "TestScripts", // limit.txtar
	"limit set --client":         "TestScripts", // limit.txtar
	"node weight":                "TestScripts", // nodes.txtar
	"schema apply":               "TestTextsAreFollowed",
	"schema apply --accept-rule": "TestAcceptRuleAsTheTextsSay",
	"schema apply --store":       "TestTextsAreFollowed",

	"schema apply --data-dir":                      "internal/app TestEmbeddedFileIsLostWhileNoNodeRuns",
	"schema apply --data-dir --store":              "TestLostDatabaseAsTheTextSays",
	"schema apply --accept-rule --lost --data-dir": "TestLostStoreOfSeveralAsTheTextSays",
	"sequence create":                              "TestScripts", // sequence.txtar
	"sequence create --start":                      "TestScripts", // sequence.txtar
	"sequence repair":                              "TestScripts", // sequence.txtar
	"sequence repair --all":                        "internal/manage TestRepairEveryRow",
	"sequence repair --all --above":                "internal/manage TestRepairEveryRow",
	"serve":                                        "TestScripts", // node.txtar
	"tag create":                                   "TestCreateAgainAsTheTextSays",
	"tag create --start":                           "TestLostDatabaseAsTheTextSays",
	"tag delete":                                   "TestScripts", // tag.txtar
	"tag repair":                                   "TestRepairAsTheTextsSay",
	"tag repair --above":                           "TestRepairAsTheTextsSay",
	"tag repair --plan":                            "TestRepairAsTheTextsSay",
	"tag set":                                      "TestOptionsAsTheTextSays",
	"tag set --format":                             "TestScripts", // format.txtar
	"tag set --max-id":                             "TestLostDatabaseAsTheTextSays",
	"tag set --step":                               "TestRowAsTheTextsSay",
	"worker confirm-clock":                         "internal/test/proof TestConfirmClockAsTheAlarmSays",
	"worker init":                                  "TestWaitSaysHowToAvoidIt",
}

var (
	// typedCommand is a command in a string of the program, with the flags and the words in
	// capitals that follow.
	typedCommand = regexp.MustCompile(`\bleaf ((?:tag|sequence|worker|node|limit|fence|schema) [a-z-]+|serve|drain|init)((?: (?:--[a-z-]*[a-z]|[A-Z]+\b|%[a-z]))*)`)
	// shows are commands that change nothing: whatever they say, no ID depends on it.
	shows = regexp.MustCompile(`^(tag|worker|node|limit) (list|show)$|--help$`)
)

// TestCommandsInTextsAreTyped: every command that an alarm or an error names is typed by a
// test. A new one needs its line in typedBy, and one that no text names any more loses it.
func TestCommandsInTextsAreTyped(t *testing.T) {
	t.Parallel()
	found := map[string]string{}
	texts(t, func(path, line string) {
		comment := strings.HasPrefix(strings.TrimSpace(line), "//")
		help := strings.Contains(line, `help:"`) || strings.Contains(path, "internal/config/") || !strings.ContainsAny(line, "\"`")
		if filepath.Ext(path) != ".go" || comment || help || strings.Contains(path, "drivertest") || strings.Contains(path, "/bench/") {
			return
		}
		for _, m := range typedCommand.FindAllStringSubmatch(line, -1) {
			flags := slices.DeleteFunc(strings.Fields(m[2]), func(word string) bool { return !strings.HasPrefix(word, "--") })
			found[strings.Join(append([]string{m[1]}, flags...), " ")] = path
		}
	})
	for command, path := range found {
		if typedBy[command] == "" && !shows.MatchString(command) {
			t.Errorf("%s names leaf %s, which no test in typedBy types", path, command)
		}
	}
	for command, test := range typedBy {
		if found[command] == "" {
			t.Errorf("no text names leaf %s any more", command)
		}
		folder, name, ok := strings.Cut(test, " ")
		if !ok {
			folder, name = "internal/cli", test
		}
		if !hasTest(t, filepath.Join("../..", folder), name) {
			t.Errorf("leaf %s: there is no test %s", command, test)
		}
	}
}

// hasTest reports whether a folder has a test of that name.
func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(text), "\nfunc "+name+"(t *testing.T)")
	})
}

// TestOptionsAsTheTextSays: options that were written by hand are ignored, with an alarm
// that names leaf tag set. That corrects them.
func TestOptionsAsTheTextSays(t *testing.T) {
	t.Parallel()
	dir, file := dataDir(t), filepath.Join(t.TempDir(), "leaf.db")
	at := []string{"--store", "sqlite:" + file, "--data-dir", dir}
	leafOK(t, append([]string{"schema", "apply"}, at...)...)
	leafOK(t, append([]string{"tag", "create", "leaf-segment-test", "--max-step", "5000"}, at...)...)
	operate(t, "sqlite:"+file, "UPDATE leaf_tag_option SET min_step = 9000")
	p := serve(t, dir, at[0], at[1], "--no-snowflake-enable")
	seen := distinct{}
	seen.add(t, p.ids(t, 10))
	p.await(t, `do="correct min_step and max_step with leaf tag set"`)
	leafOK(t, "tag", "set", "leaf-segment-test", "--min-step", "1000", "--data-dir", dir)
	seen.add(t, p.ids(t, 3000))
	p.await(t, `alarm ended: the options of tag`)
}

// TestLargestRangeIsNamedOnce: where a text tells an operator to add the largest range, it names all
// that makes a range long.
func TestLargestRangeIsNamedOnce(t *testing.T) {
	t.Parallel()
	texts(t, func(path, line string) {
		if filepath.Ext(path) == ".go" && strings.Contains(line, "three times the largest") {
			t.Errorf("%s has words of its own for segment.LargestRange: %s", path, line)
		}
	})
	document, err := os.ReadFile("../../docs/GUARANTEES.md")
	if err != nil {
		t.Fatal(err)
	}
	flat := strings.ReplaceAll(strings.Join(strings.Fields(string(document)), " "), "`", "")
	for _, text := range []string{segment.LargestRange, segment.OfClients} {
		if !strings.Contains(flat, text) {
			t.Errorf("GUARANTEES.md does not say %q", text)
		}
	}
}
