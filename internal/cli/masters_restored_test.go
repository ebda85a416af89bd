package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/segment"
)

// TestBackupsFromBeforeADivisionAsTheTextsSay: a tag comes into several databases, or back into one, and then all databases are restored
// from backups from before. What the refusals and docs/OPERATIONS.md say is done, on the machine of a node that did not issue the tag. No
// ID repeats: a node that did tells the others nothing of the numbers that it took by the rule of the backup.
func TestBackupsFromBeforeADivisionAsTheTextsSay(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	asks := regexp.MustCompile(`(?s)So take each tag that\s+did, by the rule of the backup or by any since, in steps 3 and 4 as if a node was gone.* NUMBER is\s+then the one of \[MASTERS.md\]`)
	for before, after := range map[string]string{"a": "a,b*1000", "a,b*1000": "a"} {
		folder, node, issuer, seen := t.TempDir(), dataDir(t), dataDir(t), distinct{}
		with := func(rule, dir string, words ...string) []string {
			for _, name := range []string{"a", "b"} {
				words = append(words, "--store", name+"=sqlite:"+filepath.Join(folder, name+".db"))
			}
			return append(words, "--tag-rule", "order="+rule, "--tag-rule", "*=b", "--data-dir", dir)
		}
		take := func(rule, dir string) {
			t.Helper()
			seen.add(t, printedIDs(t, leafOK(t, with(rule, dir, "next", "order", "-n", "3000")...)))
		}
		leafOK(t, with(before, node, "schema", "apply")...)
		leafOK(t, with(before, node, "tag", "create", "order")...)
		for _, name := range []string{"a", "b"} {
			operate(t, filepath.Join(folder, name+".db"), "VACUUM INTO '"+filepath.Join(folder, name+".backup")+"'")
		}
		take(before, issuer)
		leafOK(t, with(after, node, "schema", "apply", "--accept-rule")...)
		start := leafFails(t, regexp.MustCompile(`use (--start \d+) or more`), with(after, node, "tag", "create", "order")...)
		leafOK(t, with(after, node, append([]string{"tag", "create", "order"}, strings.Fields(start)...)...)...)

		for _, name := range []string{"a", "b"} {
			for _, end := range []string{".db", ".db-wal", ".db-shm"} {
				_ = os.Remove(filepath.Join(folder, name+end))
			}
			if err := os.Rename(filepath.Join(folder, name+".backup"), filepath.Join(folder, name+".db")); err != nil {
				t.Fatal(err)
			}
		}
		for _, words := range [][]string{{"serve", "--http-addr", "127.0.0.1:0", "--no-snowflake-enable"}, {"schema", "apply"}} {
			if _, text := runLeaf(t, with(after, issuer, words...)...); !strings.Contains(text, segment.AfterBackups) {
				t.Errorf("leaf %s says nothing of backups: %s", words, text)
			}
		}
		leafOK(t, with(after, node, "schema", "apply", "--accept-rule")...)
		create := []string{"tag", "create", "order"}
		if asks.Match(document) {
			create = append(create, "--start", strconv.Itoa(3000+2*(1000+3*1000*2+3000)))
		}
		leafOK(t, with(after, node, create...)...)
		take(after, node)
	}
}

// TestBackupOfOneDatabaseFromBeforeARule: one of two databases is restored from a backup from before the rule was changed. What the
// refusals say of such a backup is typed until the command ends.
func TestBackupOfOneDatabaseFromBeforeARule(t *testing.T) {
	t.Parallel()
	folder, dir := t.TempDir(), dataDir(t)
	restored, backup := filepath.Join(folder, "a.db"), filepath.Join(folder, "a.backup")
	with := func(rule string, words ...string) []string {
		return append(words, "--store", "a=sqlite:"+restored, "--store", "b=sqlite:"+filepath.Join(folder, "b.db"), "--tag-rule", "order="+rule, "--data-dir", dir)
	}
	leafOK(t, with("a", "schema", "apply")...)
	operate(t, restored, "VACUUM INTO '"+backup+"'")
	change := with("b", "schema", "apply", "--accept-rule")
	leafOK(t, change...)
	leafOK(t, with("b", "tag", "create", "order")...)
	for _, end := range []string{"", "-wal", "-shm"} {
		_ = os.Remove(restored + end)
	}
	if err := os.Rename(backup, restored); err != nil {
		t.Fatal(err)
	}

	back := regexp.MustCompile(`If a backup has brought back store "\w"(?: or "\w")?, add (--lost \w)\.`)
	for range 2 { // the database that the rule of the other one has, for each of both
		change = append(change, strings.Fields(leafFails(t, back, change...))...)
	}
	leafOK(t, change...)
	leafOK(t, with("b", "next", "order")...)
}
