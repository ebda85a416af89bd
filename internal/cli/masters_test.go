package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	aboveKnown = regexp.MustCompile(`could repeat some; .*use (--start \d+) or more`)
	asksAbove  = regexp.MustCompile(`(?s)lived in several databases, .* (--above) NUMBER.* the highest ID of them in your own tables, or \d+ if that is higher, plus 2 times the sum of one block, 1000, `)
	raiseRow   = regexp.MustCompile(`its row "(.*)" in store "(.)" has max_id=\d+. Stop all nodes, and Java servers for good, set max_id of that row to (\d+) or more with SQL`)
)

// TestMastersAsTheTextsSay: a tag in one database comes into two, then into four, then back into one, and into two again.
// What each refusal says is typed. No ID repeats, although the rows of each division stay where they are.
func TestMastersAsTheTextsSay(t *testing.T) {
	t.Parallel()
	folder, dir, seen := t.TempDir(), dataDir(t), distinct{}
	with := func(rule string, words ...string) []string {
		for _, name := range []string{"a", "b", "c", "d"} {
			words = append(words, "--store", name+"=sqlite:"+filepath.Join(folder, name+".db"))
		}
		return append(words, "--tag-rule", "order="+rule, "--data-dir", dir)
	}
	take := func(rule string) {
		t.Helper()
		for line := range strings.Lines(leafOK(t, with(rule, "next", "order", "-n", "2500")...)) {
			id, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			seen.add(t, []int64{id})
		}
	}
	create := func(rule string, refusals int) {
		t.Helper()
		words := []string{"tag", "create", "order", "--step", "700"}
		for range refusals {
			words = append(words[:5:5], strings.Fields(leafFails(t, aboveKnown, with(rule, words...)...))...)
		}
		leafOK(t, with(rule, words...)...)
	}
	leafOK(t, with("a", "schema", "apply")...)
	leafOK(t, with("a", "tag", "create", "order", "--step", "100")...)
	take("a")

	for _, rule := range []string{"a,b*1000", "d,c,b,a*1000"} {
		leafOK(t, with(rule, "schema", "apply", "--accept-rule")...)
		leafFails(t, regexp.MustCompile(`(unknown tag): "order"`), with(rule, "next", "order")...)
		create(rule, 1)
		leafFails(t, regexp.MustCompile(`tag "order" (exists)`), with(rule, "tag", "create", "order", "--start", "1000000")...)
		take(rule)
	}

	fix := func(rule string, rows int) {
		t.Helper()
		for range rows {
			m := raiseRow.FindStringSubmatch(leafFails(t, regexp.MustCompile(`(?s)(.*)`), with(rule, "schema", "apply", "--accept-rule")...))
			if m == nil {
				t.Fatalf("rule %s is not refused because of a row", rule)
			}
			operate(t, "sqlite:"+filepath.Join(folder, m[2]+".db"), "UPDATE leaf_alloc SET max_id = "+m[3]+" WHERE biz_tag = '"+m[1]+"'")
		}
		leafOK(t, with(rule, "schema", "apply", "--accept-rule")...)
	}
	// In one database again. Its board alone knows what was issued: this data directory is new.
	dir = dataDir(t)
	leafOK(t, with("c", "schema", "apply", "--accept-rule")...)
	create("c", 2) // because of the row in a, and of the board
	take("c")
	// Back to rows that were there before.
	fix("a,b*1000", 2)
	take("a,b*1000")
	fix("c", 1)
	take("c")
	if len(seen) != 15000 {
		t.Errorf("%d IDs, want 15000", len(seen))
	}
}

// TestMastersAfterLostCommitsAsTheDocumentSays: a database has lost commits, and no node has found that, when the tag comes into a third
// one. What docs/MASTERS.md says is done, the commands of the change on a machine that knows nothing. No ID repeats.
func TestMastersAfterLostCommitsAsTheDocumentSays(t *testing.T) {
	t.Parallel()
	document, err := os.ReadFile("../../docs/MASTERS.md")
	if err != nil {
		t.Fatal(err)
	}
	_, steps, _ := strings.Cut(string(document), "## Add or remove a database")
	folder, node, command, seen := t.TempDir(), dataDir(t), dataDir(t), distinct{}
	with := func(rule, dir string, words ...string) []string {
		for _, name := range []string{"a", "b", "c"} {
			words = append(words, "--store", name+"=sqlite:"+filepath.Join(folder, name+".db"))
		}
		return append(words, "--tag-rule", "order="+rule, "--data-dir", dir)
	}
	take := func(rule string) {
		t.Helper()
		seen.add(t, printedIDs(t, leafOK(t, with(rule, node, "next", "order", "-n", "2500")...)))
	}
	const before, after = "a,b*1000", "a,b,c*1000"
	leafOK(t, with(before, node, "schema", "apply")...)
	leafOK(t, with(before, node, "tag", "create", "order")...)
	take(before)
	operate(t, "sqlite:"+filepath.Join(folder, "a.db"), "UPDATE leaf_alloc SET max_id = 1")

	if says := regexp.MustCompile(`^\s+Another number .*\n.*\n\n1\. While all nodes run, repair each row of the tag, latched or not, such as .leaf tag repair`); says.MatchString(steps) {
		leafOK(t, with(before, node, "tag", "repair", "order~1of2~1000")...) // the other row has lost nothing
	}
	leafOK(t, with(after, command, "schema", "apply", "--accept-rule")...)
	start := leafFails(t, aboveKnown, with(after, command, "tag", "create", "order")...)
	leafOK(t, with(after, command, append([]string{"tag", "create", "order"}, strings.Fields(start)...)...)...)
	take(after)
}

// TestMastersWords: what a command says that names a tag in several databases, or one of its rows.
func TestMastersWords(t *testing.T) {
	t.Parallel()
	folder, dir := t.TempDir(), dataDir(t)
	with := func(words ...string) []string {
		return append(words, "--store", "a=sqlite:"+filepath.Join(folder, "a.db"), "--store", "b=sqlite:"+filepath.Join(folder, "b.db"), "--tag-rule", "order*=a,b*1000", "--data-dir", dir)
	}
	leafOK(t, with("schema", "apply")...)
	if out := leafOK(t, with("tag", "create", "order", "--json")...); !strings.Contains(out, `"store": "a,b"`) && !strings.Contains(out, `"store":"a,b"`) {
		t.Errorf("create says:\n%s", out)
	}
	got := strings.Join(strings.Fields(leafOK(t, with("next", "order", "-n", "3")...)), " ")
	if got != "1 2 3" && got != "1000 1001 1002" { // those of the second database, where the first one answers late
		t.Errorf("the first IDs are %s", got)
	}
	for _, tt := range []struct{ want, words string }{
		{`lives in several databases; name one of its rows: (order~1of2~1000, order~2of2~1000)`, "tag show order"},
		{`lives in several databases; name (one) of its rows`, "tag delete order --yes"},
		{`tag "order" lives in several databases, and such a tag has (no) limit`, "limit set order --rate 5"},
		{`tag "order" lives in several databases, and such a tag has (no) limit`, "limit set order~1of2~1000 --block"},
		{`is the (form) of the rows of a tag in several databases`, "tag create order~1of2~2000"},
		{`format="\{seq\}": must be (empty) for a tag in several databases`, "tag create orders --format {seq}"},
		{`order="strict": must be (plain) for a tag in several databases`, "tag create orders --order strict"},
		{`order="strict": must be (plain) for a tag in several databases`, "tag set order~1of2~1000 --order strict"},
		{`period="day": must be (none) for a tag in several databases`, "tag create orders --period day"},
		{`(unknown tag): "order~1of2~1000" is a row of the tag "order"`, "next order~1of2~1000"},
	} {
		leafFails(t, regexp.MustCompile(tt.want), with(strings.Fields(tt.words)...)...)
	}
	leafOK(t, with("tag", "show", "order~2of2~1000")...)
	leafOK(t, with("limit", "clear", "order~2of2~1000")...) // that an earlier version has set

	// A row beside one that has issued IDs was perhaps lost.
	leafOK(t, with("tag", "set", "order~2of2~1000", "--max-id", "4500")...)
	operate(t, "sqlite:"+filepath.Join(folder, "a.db"), "DELETE FROM leaf_alloc")
	dir = dataDir(t)
	above := leafFails(t, regexp.MustCompile(`row "order~1of2~1000" is not there. .* or (9501) if that is higher, plus .* If it was never there, --start 9501 is enough`), with("tag", "create", "order")...)
	leafOK(t, with("tag", "create", "order", "--start", above)...)

	// A row that was deleted comes back above its numbers, which are IDs of the tag to the command.
	leafOK(t, with("tag", "delete", "order~1of2~1000", "--yes")...)
	dir = dataDir(t)
	start := leafFails(t, regexp.MustCompile(`(--start \d+) is enough`), with("tag", "create", "order")...)
	leafOK(t, with(append([]string{"tag", "create", "order"}, strings.Fields(start)...)...)...)
	leafOK(t, with("next", "order")...)
}

// TestLostRowAsTheTextsSay: a database of a tag is lost, and so is a node that took IDs there which no table has yet. The row is made
// again on a machine that knows nothing, with the number that the refusal says to find. No ID repeats, although the IDs of a row lie
// further apart than its numbers. Then all that is lost again, before a table has an ID above that number.
func TestLostRowAsTheTextsSay(t *testing.T) {
	t.Parallel()
	folder, node, gone, seen := t.TempDir(), dataDir(t), dataDir(t), distinct{}
	with := func(dir string, words ...string) []string {
		for _, name := range []string{"a", "b", "c", "d"} {
			words = append(words, "--store", name+"=sqlite:"+filepath.Join(folder, name+".db"))
		}
		return append(words, "--tag-rule", "order=a,b,c,d*1000", "--data-dir", dir)
	}
	take := func(dir string, words ...string) (highest int64) {
		t.Helper()
		ids := printedIDs(t, leafOK(t, with(dir, append([]string{"next", "order"}, words...)...)...))
		seen.add(t, ids)
		return slices.Max(ids)
	}
	const step, held = 1000, 5000
	leafOK(t, with(node, "schema", "apply")...)
	leafOK(t, with(node, "tag", "create", "order", "--step", strconv.Itoa(step), "--fixed-step")...)
	leafOK(t, with(node, "tag", "set", "order~2of4~1000", "--max-id", "20")...) // others have taken IDs there
	inTables := take(node, "-n", "10")
	const generously = 100_000
	typed, highest := int64(0), take(gone, "-n", strconv.Itoa(held))
	for starts := range int64(2) { // of commands, beside those of the two nodes
		operate(t, "sqlite:"+filepath.Join(folder, "a.db"), "DELETE FROM leaf_alloc", "DELETE FROM leaf_repair", "DELETE FROM leaf_repair_node")
		command := dataDir(t)
		says := leafFails(t, regexp.MustCompile(`(?s)(row "order~1of4~1000" is not there.*)`), with(command, "tag", "create", "order")...)
		begin, times, block := inTables, 1, 0
		if strings.Contains(says, "if the tag was given a higher number since, by --start") {
			begin = max(begin, typed)
		}
		if m := regexp.MustCompile(`plus (\d+) times the sum of one block, (\d+), `).FindStringSubmatch(says); m != nil {
			times, _ = strconv.Atoi(m[1])
			block, _ = strconv.Atoi(m[2])
		}
		typed = begin + int64(times)*(int64(block)+3*step*(starts+2)+held*(starts+1))
		if typed <= highest {
			t.Errorf("start at %d by the text, and IDs up to %d are in use", typed, highest)
		}
		typed += generously * (1 - starts)
		leafOK(t, with(command, "tag", "create", "order", "--step", strconv.Itoa(step), "--start", strconv.FormatInt(typed, 10))...)
		highest = take(command, "-n", strconv.Itoa(held))
	}
}

// TestLostRowThatWasGivenANumber: a row is moved on, and its database is lost before a table has an ID from there. The number that was
// typed is one of the row, and its IDs are twice as high. The row is made again on a machine that knows nothing, as the text says.
func TestLostRowThatWasGivenANumber(t *testing.T) {
	t.Parallel()
	folder, node, command := t.TempDir(), dataDir(t), dataDir(t)
	with := func(dir string, words ...string) []string {
		return append(words, "--store", "a=sqlite:"+filepath.Join(folder, "a.db"), "--store", "b=sqlite:"+filepath.Join(folder, "b.db"), "--tag-rule", "order=a,b*1000", "--data-dir", dir)
	}
	const row, step, typed = "order~1of2~1000", 1000, 1_000_000
	leafOK(t, with(node, "schema", "apply")...)
	leafOK(t, with(node, "tag", "create", "order", "--step", strconv.Itoa(step), "--fixed-step")...)
	leafOK(t, with(node, "tag", "set", row, "--max-id", strconv.Itoa(typed))...)
	issued, err := strconv.ParseInt(strings.TrimSpace(leafOK(t, with(node, "next", "order")...)), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	operate(t, "sqlite:"+filepath.Join(folder, "a.db"), "DELETE FROM leaf_alloc", "DELETE FROM leaf_repair", "DELETE FROM leaf_repair_node")

	says := leafFails(t, regexp.MustCompile(`(?s)is not there. If it was lost (.* begin with that one.*)`), with(command, "tag", "create", "order")...)
	begin := int64(typed)
	if m := regexp.MustCompile(`multiply one that was given to a row by the number behind its "of", such as (\d+) in TAG~1of(\d+)~1000`).FindStringSubmatch(says); m != nil && m[1] == m[2] {
		begin *= 2
	}
	start := begin + 2*(1000+3*step*2+1) // of two starts, and of the one ID that no table has
	if start <= issued {
		t.Errorf("start at %d by the text, and ID %d was handed out: %s", start, issued, says)
	}
}

// TestLostRowBesideAnUnusedOne: nodes have taken IDs of a tag from one of its databases only, and that one is lost. The row in the other
// database is as leaf tag create has made it, and does not show that there were IDs. The command, on a machine that knows nothing, takes
// the lost row for none that was never made.
func TestLostRowBesideAnUnusedOne(t *testing.T) {
	t.Parallel()
	for used, row := range map[string]string{"a": "order~1of2~1000", "b": "order~2of2~1000"} {
		folder, node, command := t.TempDir(), dataDir(t), dataDir(t)
		with := func(dir string, words ...string) []string {
			return append(words, "--store", "a=sqlite:"+filepath.Join(folder, "a.db"), "--store", "b=sqlite:"+filepath.Join(folder, "b.db"), "--tag-rule", "order=a,b*1000", "--data-dir", dir)
		}
		leafOK(t, with(node, "schema", "apply")...)
		leafOK(t, with(node, "tag", "create", "order")...)
		leafOK(t, with(node, "tag", "set", row, "--max-id", "900")...) // nodes have taken IDs there
		operate(t, "sqlite:"+filepath.Join(folder, used+".db"), "DELETE FROM leaf_alloc", "DELETE FROM leaf_repair", "DELETE FROM leaf_repair_node")

		start := leafFails(t, regexp.MustCompile(`(?s)is not there. If it was lost .* If it was never there, (--start \d+) is enough`), with(command, "tag", "create", "order")...)
		leafOK(t, with(command, append([]string{"tag", "create", "order"}, strings.Fields(start)...)...)...)
	}
}

// TestLostMasterAsTheTextsSay: one of the two databases of a tag is lost, and the tag comes into one database, into two others, or into
// two of which the one that is left takes the place of the lost one. All IDs were taken from the lost one, and the rows that are left do
// not show them. What each refusal says is typed. No ID repeats.
func TestLostMasterAsTheTextsSay(t *testing.T) {
	t.Parallel()
	for _, next := range []string{"a", "a,c*2000", "a,c*1000"} {
		folder, dir, high := t.TempDir(), dataDir(t), int64(0)
		with := func(stores, rule string, words ...string) []string {
			for _, name := range stores {
				words = append(words, "--store", string(name)+"=sqlite:"+filepath.Join(folder, string(name)+".db"))
			}
			return append(words, "--tag-rule", "order="+rule, "--data-dir", dir)
		}
		take := func(stores, rule string) {
			t.Helper()
			if id := slices.Min(printedIDs(t, leafOK(t, with(stores, rule, "next", "order", "-n", "10")...))); id <= high {
				t.Fatalf("rule %s: ID %d, and IDs up to %d are in use", rule, id, high)
			}
		}
		leafOK(t, with("ac", "a", "schema", "apply")...)
		leafOK(t, with("ac", "a", "tag", "create", "order")...)
		leafOK(t, with("abc", "b,a*1000", "schema", "apply", "--accept-rule")...)
		leafOK(t, with("abc", "b,a*1000", "tag", "create", "order")...)
		leafOK(t, with("abc", "b,a*1000", "tag", "set", "order~1of2~1000", "--max-id", "4500")...)
		take("abc", "b,a*1000")
		high = 4510 * 2
		dir = dataDir(t)

		const stores = "ac"
		change := []string{"schema", "apply", "--accept-rule"}
		change = append(change, strings.Fields(leafFails(t, regexp.MustCompile(`if no node can ever reach it again, (--lost b)`), with(stores, next, change...)...))...)
		above := leafFails(t, asksAbove, with(stores, next, change...)...)
		change = append(change, above, strconv.FormatInt(high, 10))
		if next == "a" {
			m := raiseRow.FindStringSubmatch(leafFails(t, regexp.MustCompile(`(?s)(.*)`), with(stores, next, change...)...))
			if m == nil {
				t.Fatal("the row from before the tag lived in several databases is not refused")
			}
			operate(t, "sqlite:"+filepath.Join(folder, m[2]+".db"), "UPDATE leaf_alloc SET max_id = "+m[3]+" WHERE biz_tag = '"+m[1]+"'")
		}
		if report := leafOK(t, with(stores, next, change...)...); !strings.Contains(report, "b: nothing is known of the tags of a database that is lost") {
			t.Errorf("the command reports\n%s", report)
		}
		if next != "a" {
			start := leafFails(t, aboveKnown, with(stores, next, "tag", "create", "order")...)
			leafOK(t, with(stores, next, append([]string{"tag", "create", "order"}, strings.Fields(start)...)...)...)
		}
		take(stores, next)
	}
}

// TestLostMasterBesideARowOfAnEarlierRule: the databases of a tag have changed places, the first one is lost, and the other takes its
// place. There it has a row from before the change, which shows nothing of what the lost row has handed out. What each refusal says is
// typed, on a machine that knows nothing. No ID repeats. Where the lost database comes back empty under the same rule, the command asks
// for no number.
func TestLostMasterBesideARowOfAnEarlierRule(t *testing.T) {
	t.Parallel()
	folder, dir := t.TempDir(), dataDir(t)
	with := func(stores, rule string, words ...string) []string {
		for _, name := range stores {
			words = append(words, "--store", string(name)+"=sqlite:"+filepath.Join(folder, string(name)+".db"))
		}
		return append(words, "--tag-rule", "order="+rule, "--data-dir", dir)
	}
	create := func(stores, rule, start string) {
		t.Helper()
		leafOK(t, append(with(stores, rule, "tag", "create", "order"), strings.Fields(start)...)...)
	}
	leafOK(t, with("abc", "a,b*1000", "schema", "apply")...)
	create("abc", "a,b*1000", "")
	leafOK(t, with("abc", "b,a*1000", "schema", "apply", "--accept-rule")...)
	create("abc", "b,a*1000", "--start 5000")
	leafOK(t, with("abc", "b,a*1000", "tag", "set", "order~1of2~1000", "--max-id", "4500")...) // nodes have taken IDs there
	const high = 4500 * 2

	dir = dataDir(t)
	change := with("ac", "a,c*1000", "schema", "apply", "--accept-rule", "--lost", "b")
	leafFails(t, regexp.MustCompile(`your own tables, or (4000) if that is higher`), change...) // up to which the row that is left has got
	change = append(change, leafFails(t, asksAbove, change...), strconv.Itoa(high))
	m := raiseRow.FindStringSubmatch(leafFails(t, regexp.MustCompile(`(?s)(.*)`), change...))
	if m == nil {
		t.Fatal("the row from before the databases changed places is not refused")
	}
	operate(t, "sqlite:"+filepath.Join(folder, m[2]+".db"), "UPDATE leaf_alloc SET max_id = "+m[3]+" WHERE biz_tag = '"+m[1]+"'")
	leafOK(t, change...)
	enough := regexp.MustCompile(`(--start \d+) is enough`)
	create("ac", "a,c*1000", leafFails(t, enough, with("ac", "a,c*1000", "tag", "create", "order")...))
	if id := slices.Min(printedIDs(t, leafOK(t, with("ac", "a,c*1000", "next", "order", "-n", "10")...))); id <= high {
		t.Fatalf("ID %d, and IDs up to %d are in use", id, high)
	}

	for _, end := range []string{"", "-wal", "-shm"} {
		_ = os.Remove(filepath.Join(folder, "c.db"+end))
	}
	leafOK(t, with("ac", "a,c*1000", "schema", "apply", "--accept-rule", "--lost", "c")...)
	leafFails(t, enough, with("ac", "a,c*1000", "tag", "create", "order")...)
}

// TestMastersBesideAVanishedRow: a row that the tag had by an earlier rule vanished without leaf tag delete, and only nodes tell where it
// ended. The refusal says that a node which is stopped may know a higher number, as of a tag in one database.
func TestMastersBesideAVanishedRow(t *testing.T) {
	t.Parallel()
	folder, dir := t.TempDir(), dataDir(t)
	with := func(words ...string) []string {
		return append(words, "--store", "a=sqlite:"+filepath.Join(folder, "a.db"), "--store", "b=sqlite:"+filepath.Join(folder, "b.db"), "--tag-rule", "order*=a,b*1000", "--data-dir", dir)
	}
	leafOK(t, with("schema", "apply")...)
	for row, tag := range map[string]string{"order": "order", "orders~2of3~1000": "orders"} {
		operate(t, "sqlite:"+filepath.Join(folder, "b.db"), "INSERT INTO leaf_repair_node (biz_tag, node, asked, high, latched, seen) VALUES ('"+row+"', 'gone', 0, 500, false, 1)")
		leafFails(t, regexp.MustCompile(`could repeat some; use --start \d+ or more. This start is above all that nodes have told. Where a row is gone that leaf tag delete did not delete, a node that is (stopped)`), with("tag", "create", tag)...)
	}
}
