package cli_test

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// acceptRule is what the refusal of another rule says to type, of a node and of the command.
var acceptRule = map[string]*regexp.Regexp{
	"serve":        regexp.MustCompile(`if this node's rule is right, stop all nodes, and Java servers for good, then move the rows to where it expects them .*, then run, with the settings of this node: leaf (schema apply --accept-rule)`),
	"schema apply": regexp.MustCompile(`if the configured rule is right, stop all nodes, and Java servers for good, then move the rows to where it expects them .*, then add (--accept-rule)`),
}

// TestAcceptRuleAsTheTextsSay: the rule that divides the tags is changed. A node and leaf
// schema apply refuse it. The row is moved as the text says, and the command is typed
// literally. Then IDs go on, and none repeats.
func TestAcceptRuleAsTheTextsSay(t *testing.T) {
	t.Parallel()
	for asked, says := range acceptRule {
		t.Run(asked, func(t *testing.T) {
			t.Parallel()
			folder, dir, seen := t.TempDir(), dataDir(t), distinct{}
			a, b := filepath.Join(folder, "a.db"), filepath.Join(folder, "b.db")
			under := func(rule string, words ...string) []string {
				return append(words, "--store", "a=sqlite:"+a, "--store", "b=sqlite:"+b, "--tag-rule", "order*="+rule, "--data-dir", dir)
			}
			take := func(rule string, n int) {
				t.Helper()
				for line := range strings.Lines(leafOK(t, under(rule, "next", "order", "-n", strconv.Itoa(n))...)) {
					id, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
					if err != nil {
						t.Fatal(err)
					}
					seen.add(t, []int64{id})
				}
			}
			leafOK(t, under("a", "schema", "apply")...)
			leafOK(t, under("a", "tag", "create", "order", "--step", "100")...)
			take("a", 250)

			typed := leafFails(t, says, under("b", strings.Fields(asked)...)...)
			operate(t, "sqlite:"+b, "ATTACH '"+a+"' AS was; INSERT INTO leaf_alloc SELECT * FROM was.leaf_alloc; DELETE FROM was.leaf_alloc")
			if asked != "serve" {
				typed = asked + " " + typed
			}
			leafOK(t, under("b", strings.Fields(typed)...)...)
			take("b", 250)
			if len(seen) != 500 {
				t.Errorf("%d IDs, want 500", len(seen))
			}
		})
	}
}

// TestLeftOutDatabaseAsTheTextSays: the new rule has one database less. The command names the
// option for the other one, and what it says is typed.
func TestLeftOutDatabaseAsTheTextSays(t *testing.T) {
	t.Parallel()
	folder, dir, seen := t.TempDir(), dataDir(t), distinct{}
	a, b := filepath.Join(folder, "a.db"), filepath.Join(folder, "b.db")
	both := []string{"--store", "a=sqlite:" + a, "--store", "b=sqlite:" + b, "--tag-rule", "order*=a", "--data-dir", dir}
	one := []string{"--store", "sqlite:" + b, "--data-dir", dir}
	run := func(with []string, words ...string) []string { return append(words, with...) }
	take := func(with []string) {
		t.Helper()
		for line := range strings.Lines(leafOK(t, run(with, "next", "order", "-n", "250")...)) {
			id, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			seen.add(t, []int64{id})
		}
	}
	leafOK(t, run(both, "schema", "apply")...)
	leafOK(t, run(both, "tag", "create", "order", "--step", "100")...)
	take(both)
	operate(t, "sqlite:"+b, "ATTACH '"+a+"' AS was; INSERT INTO leaf_alloc SELECT * FROM was.leaf_alloc")
	option := leafFails(t, regexp.MustCompile(`Add (--leave-out) with its URL, or, if no node can ever reach it again, --lost a`), run(one, "schema", "apply", "--accept-rule")...)
	leafOK(t, run(one, "schema", "apply", "--accept-rule", option, "sqlite:"+a)...)
	take(one)
	if len(seen) != 500 {
		t.Errorf("%d IDs, want 500", len(seen))
	}
}
