package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// moveSection is the heading in docs/OPERATIONS.md of what TestMoveToAnotherDatabaseAsTheDocumentSays does.
const moveSection = "Move to another database"

// TestMoveToAnotherDatabaseAsTheDocumentSays: a node moves from a file, or from leaf.db, to another database, as docs/OPERATIONS.md
// says of another engine. No ID repeats, also of a tag that was deleted before, and options stay.
func TestMoveToAnotherDatabaseAsTheDocumentSays(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(document), "## "+moveSection)
	copied, empty, found := strings.Cut(section, "Leave the others empty")
	if !found {
		t.Fatal("docs/OPERATIONS.md does not say which tables are copied")
	}
	empty, _, _ = strings.Cut(empty, "\n4. ")
	name := regexp.MustCompile("`(leaf_\\w+)`")
	tables := func(text string) (all []string) {
		for _, m := range name.FindAllStringSubmatch(text, -1) {
			all = append(all, m[1])
		}
		return all
	}
	told := append(tables(copied), tables(empty)...)
	for _, m := range regexp.MustCompile(`CREATE TABLE IF NOT EXISTS (\w+)`).FindAllStringSubmatch(leafOK(t, "schema", "print", "--dialect", "sqlite"), -1) {
		if !slices.Contains(told, m[1]) {
			t.Errorf("docs/OPERATIONS.md does not say whether %s is copied", m[1])
		}
	}
	for from, embedded := range map[string]bool{"a file": false, "leaf.db": true} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			dir, folder, seen := dataDir(t), t.TempDir(), distinct{}
			was, is := filepath.Join(folder, "old.db"), filepath.Join(folder, "new.db")
			old := []string{"--store", "sqlite:" + was}
			if embedded {
				was, old = filepath.Join(dir, "leaf.db"), nil
			}
			run := func(with []string, words ...string) string {
				return leafOK(t, append(append(words, "--data-dir", dir), with...)...)
			}
			moved := []string{"--store", "sqlite:" + is}
			if !embedded {
				run(old, "schema", "apply")
				run(old, "tag", "create", "leaf-segment-test")
			}
			for _, tag := range []string{"gone", "ordered"} {
				run(old, "tag", "create", tag, "--order", "strict")
			}
			p := serve(t, dir, old...)
			seen.add(t, p.ids(t, 1500))
			p.end(t, syscall.SIGKILL)
			if list := run(old, "tag", "list"); strings.Contains(list, "latched") {
				t.Errorf("a tag is to be repaired:\n%s", list)
			}
			run(old, "tag", "set", "gone", "--max-id", "700")
			run(old, "tag", "delete", "gone", "--yes")

			leafOK(t, append([]string{"schema", "apply", "--data-dir", dataDir(t)}, moved...)...)
			attach := "ATTACH '" + was + "' AS was; "
			for _, table := range tables(copied) {
				attach += "DELETE FROM " + table + "; INSERT INTO " + table + " SELECT * FROM was." + table + "; "
			}
			operate(t, "sqlite:"+is, attach)
			p = serve(t, dir, moved...)
			seen.add(t, p.ids(t, 1500))
			p.await(t, `msg="snowflake mode waits"`)
			if shows := run(nil, "tag", "show", "ordered"); !strings.Contains(shows, "strict") {
				t.Errorf("the options are lost:\n%s", shows)
			}
			leafFails(t, regexp.MustCompile(`use --start (700) or more`), "tag", "create", "gone", "--data-dir", dir)
			p.end(t, syscall.SIGTERM)
		})
	}
}
