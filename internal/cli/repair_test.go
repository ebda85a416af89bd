package cli_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/cli"
	"github.com/leaf-idgen/leaf/segment"
)

// command is a command about a repair in a text that people read.
var command = regexp.MustCompile("leaf tag repair( [A-Za-z-]+)*")

// useOrMore is the number that an error names for --above.
var useOrMore = regexp.MustCompile(`could repeat some; use (\d+) or more`)

// commands returns the distinct commands about repairs in all documents and in all
// strings of the program. Each is what somebody may type.
func commands(t *testing.T) (found []string) {
	t.Helper()
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "bin" || d.Name() == "adr" || d.Name() == "test" || strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2):
			return filepath.SkipDir
		case d.IsDir(), strings.HasSuffix(path, "_test.go"), strings.HasSuffix(path, "CHANGELOG.md"):
			return nil
		case filepath.Ext(path) != ".go" && filepath.Ext(path) != ".md":
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, c := range command.FindAllString(string(text), -1) {
			words := strings.Fields(c)[3:]
			n := slices.IndexFunc(words, func(w string) bool { return w != strings.ToUpper(w) && !strings.HasPrefix(w, "--") })
			if n >= 0 {
				words = words[:n] // the sentence goes on
			}
			if c = strings.Join(words, " "); c != "" && !slices.Contains(found, c) {
				found = append(found, c)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(found)
	return found
}

// TestRepairAsTheTextsSay: a table is restored from a dump under two nodes. One of them
// latches, the other one holds a range from before. Whatever alarm, error or document says about a
// repair is typed literally, once, on either node. No ID repeats, and both nodes serve.
func TestRepairAsTheTextsSay(t *testing.T) {
	t.Parallel()
	all := commands(t)
	if !slices.Contains(all, "TAG") {
		t.Fatalf("the texts name %q: the test no longer tests what it says", all)
	}
	for _, c := range all {
		if c == "--help" {
			leafOK(t, "tag", "repair", "--help")
			continue
		}
		for on, name := range []string{"the node that latched", "the other node"} {
			t.Run(c+" on "+name, func(t *testing.T) {
				t.Parallel()
				r := newRestoredTable(t)
				words := strings.Fields(c)
				for i, w := range words {
					switch w {
					case "TAG":
						words[i] = "leaf-segment-test"
					case "N", "NUMBER":
						words[i] = strconv.FormatInt(r.highest, 10)
					}
				}
				run := func() {
					t.Helper()
					args := append(append([]string{"tag", "repair"}, words...), "--data-dir", r.nodes[on].dir)
					var out, errs bytes.Buffer
					if cli.Run(t.Context(), cli.Process{Args: args, Stdout: &out, Stderr: &errs}) == 0 {
						return
					}
					// A node that latched before its range was used up holds an end above the
					// highest number that was issued. The error says what to type instead.
					higher := useOrMore.FindStringSubmatch(errs.String())
					if higher == nil {
						t.Fatalf("leaf %s: %s", strings.Join(args, " "), errs.String())
					}
					args[slices.Index(args, "--above")+1] = higher[1]
					leafOK(t, args...)
				}
				run()
				if i := slices.Index(words, "--plan"); i >= 0 {
					for i, n := range r.nodes {
						if status, body, err := httpGet(n.addr, "/api/segment/get/leaf-segment-test"); err != nil || status == 200 {
							t.Errorf("node %d after a plan: %d %s, %v; want it latched", i, status, body, err)
						}
					}
					words = slices.Delete(words, i, i+1)
					run()
				}
				r.goesOn(t)
			})
		}
	}
}

// TestRepairWithoutTheTables: where the tables are missing by which nodes reach one another,
// a repair with a number works on one node. It says so, and what to type: after that no
// node issues a number at or below.
func TestRepairWithoutTheTables(t *testing.T) {
	t.Parallel()
	r := newRestoredTable(t)
	operate(t, r.args[1], "DROP TABLE leaf_repair", "DROP TABLE leaf_repair_node")
	args := []string{"tag", "repair", "leaf-segment-test", "--above", strconv.FormatInt(r.highest+1000, 10), "--data-dir", r.nodes[0].dir}
	out := leafOK(t, args...)
	say := regexp.MustCompile(`other nodes +neither asked nor told: .*run: (leaf schema apply --store "[^"]+")`).FindStringSubmatch(out)
	if say == nil || strings.Contains(out, "no node issues") || !strings.Contains(out, "then repeat the command") {
		t.Fatalf("leaf %s printed:\n%s", strings.Join(args, " "), out)
	}
	leafOK(t, append(strings.Fields(strings.ReplaceAll(say[1], `"`, ""))[1:], "--data-dir", dataDir(t))...)
	if out := leafOK(t, args...); !strings.Contains(out, "no node issues") || strings.Contains(out, "other nodes") {
		t.Errorf("with the tables the command printed:\n%s", out)
	}
	r.highest += 1000
	r.goesOn(t)
}

// TestAlarmSaysWhatToType: the alarm of a node that latched, and that of a node which
// hears of it, name the command that TestRepairAsTheTextsSay runs.
func TestAlarmSaysWhatToType(t *testing.T) {
	t.Parallel()
	r := newRestoredTable(t)
	for i, n := range r.nodes {
		if log := n.log.String(); !strings.Contains(log, "then run on any one node: leaf tag repair TAG, which asks all nodes") {
			t.Errorf("node %d does not say what to type:\n%s", i, log)
		}
	}
}

// TestRepairNamesTheNodeThatIsGone: a node that was killed is named, and nothing is
// changed. Started again, it is asked.
func TestRepairNamesTheNodeThatIsGone(t *testing.T) {
	t.Parallel()
	r := newRestoredTable(t)
	dir := r.nodes[0].dir
	r.nodes[0].end(t, syscall.SIGKILL)
	var out, errs bytes.Buffer
	code := cli.Run(t.Context(), cli.Process{Args: []string{"tag", "repair", "leaf-segment-test", "--data-dir", r.nodes[1].dir}, Stdout: &out, Stderr: &errs})
	text := errs.String()
	if code != 4 || !strings.Contains(text, "nodes do not answer: ") || !strings.Contains(text, "start them and repeat the command") {
		t.Errorf("exit code %d, %s", code, text)
	}
	r.nodes[0] = serve(t, dir, r.args...)
	leafOK(t, "tag", "repair", "leaf-segment-test", "--data-dir", r.nodes[1].dir)
	r.goesOn(t)
}

// restoredTable is two nodes on one table that was restored from a dump, just after the
// first one latched.
type restoredTable struct {
	nodes   [2]*process
	args    []string
	seen    distinct
	highest int64
}

// operate runs statements in the SQLite database of a store, as an operator does.
func operate(t *testing.T, store string, statements ...string) {
	t.Helper()
	if err := runSQL(t.Context(), strings.TrimPrefix(store, "sqlite:"), statements...); err != nil {
		t.Fatal(err)
	}
}

func runSQL(ctx context.Context, file string, statements ...string) error {
	db, err := sql.Open("sqlite", "file:"+file+"?_busy_timeout=10000")
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if err == nil {
			_, err = db.ExecContext(ctx, statement)
		}
	}
	return errors.Join(err, db.Close())
}

func newRestoredTable(t *testing.T) *restoredTable {
	t.Helper()
	store := "sqlite:" + filepath.Join(t.TempDir(), "shared.db")
	leafOK(t, "schema", "apply", "--store", store, "--data-dir", dataDir(t))
	leafOK(t, "tag", "create", "leaf-segment-test", "--step", "100", "--fixed-step", "--store", store, "--data-dir", dataDir(t))
	r := &restoredTable{seen: distinct{}, args: []string{"--store", store, "--no-snowflake-enable"}}
	for i := range r.nodes {
		r.nodes[i] = serve(t, dataDir(t), r.args...)
	}
	r.take(t, 1, 5) // the other node has a range, and soon the next one
	r.take(t, 0, 1500)
	operate(t, store, "UPDATE leaf_alloc SET max_id = 701 WHERE biz_tag = 'leaf-segment-test'")
	latched := func(n *process) bool {
		return strings.Contains(n.log.String(), "code=regress")
	}
	for deadline := time.Now().Add(30 * time.Second); !latched(r.nodes[0]) || !latched(r.nodes[1]); {
		if status, body, err := httpGet(r.nodes[0].addr, "/api/segment/get/leaf-segment-test"); err == nil && status == 200 {
			id, err := strconv.ParseInt(strings.TrimSpace(body), 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			r.add(t, []int64{id})
		}
		if time.Now().After(deadline) {
			t.Fatalf("the nodes do not latch; logs:\n%s\n%s", r.nodes[0].log, r.nodes[1].log)
		}
		time.Sleep(time.Millisecond)
	}
	return r
}

func (r *restoredTable) take(t *testing.T, node, n int) {
	t.Helper()
	r.add(t, r.nodes[node].ids(t, n))
}

func (r *restoredTable) add(t *testing.T, ids []int64) {
	t.Helper()
	r.seen.add(t, ids)
	r.highest = max(r.highest, slices.Max(ids))
}

// goesOn takes IDs from both nodes in turn. All lie above what was issued before.
func (r *restoredTable) goesOn(t *testing.T) {
	t.Helper()
	before := r.highest
	for range 20 {
		for i, n := range r.nodes {
			ids := n.ids(t, 20)
			r.add(t, ids)
			if first := slices.Min(ids); first <= before {
				t.Fatalf("node %d issues %d after the repair; %d was issued before", i, first, before)
			}
		}
	}
	for i, n := range r.nodes {
		if _, body, err := httpGet(n.addr, "/readyz"); err != nil || strings.Contains(body, "regress") {
			t.Errorf("node %d after the repair: %s, %v", i, body, fmt.Sprint(err))
		}
	}
}

// TestRepairPlanShowsWhatIsThere: the plan has a line only for a number that is known.
func TestRepairPlanShowsWhatIsThere(t *testing.T) {
	t.Parallel()
	p := segment.RepairPlan{Row: 5, Above: 5, First: 6}
	for _, deleted := range []int64{0, 9} {
		p.Deleted = deleted
		var out bytes.Buffer
		if err := cli.PrintRepairPlan(&out, p); err != nil || strings.Contains(out.String(), "deleted row") != (deleted != 0) {
			t.Errorf("deleted=%d: %v\n%s", deleted, err, out.String())
		}
	}
}

// TestRepairSpeaksOfCaches: programs may keep IDs that other programs have got, too. No node can take them away, so the repair says
// what to do. With a cluster fence it says so, too: the fence may have come after the loss, and nodes have written there what they knew.
func TestRepairSpeaksOfCaches(t *testing.T) {
	t.Parallel()
	const restart, unless = "restart the programs that keep IDs of the tag in memory", "afterwards, unless all nodes had this cluster fence already when the database lost commits"
	for _, c := range []struct {
		p               segment.RepairPlan
		restart, unless bool
	}{
		{segment.RepairPlan{Row: 5, Above: 5, First: 6}, true, false},
		{segment.RepairPlan{Row: 5, Above: 5, First: 6, ClusterFence: 5}, true, true},
		{segment.RepairPlan{Row: 5, Refused: "nodes do not answer"}, false, false},
	} {
		var out bytes.Buffer
		err := cli.PrintRepairPlan(&out, c.p)
		if err != nil || strings.Contains(out.String(), restart) != c.restart || strings.Contains(out.String(), unless) != c.unless {
			t.Errorf("%+v: %v\n%s", c.p, err, out.String())
		}
	}
}

// TestRepairPlanOfAnEmptyRow: a row with max_id=0 is there, and a tag without a row has none.
func TestRepairPlanOfAnEmptyRow(t *testing.T) {
	t.Parallel()
	for want, p := range map[string]segment.RepairPlan{
		"row       0 (max_id)\nabove     0 (no node issues a number at or below it)\nfirst ID  1\n": {First: 1},
		"row      none\nrefused  nothing to repair\n":                                               {NoRow: true, Refused: "nothing to repair"},
	} {
		var out bytes.Buffer
		if err := cli.PrintRepairPlan(&out, p); err != nil || out.String() != want {
			t.Errorf("%v\ngot\n%swant\n%s", err, out.String(), want)
		}
	}
}

// TestRepairSpeaksOfNodesThatItDoesNotReach: a repair that goes on without a node does not say that no node issues from below.
func TestRepairSpeaksOfNodesThatItDoesNotReach(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]segment.RepairPlan{
		"all are reached": {Row: 5, Above: 5, First: 6},
		"one is not":      {Row: 5, Above: 5, First: 6, Untold: []string{"b"}},
		"refused":         {Row: 5, Refused: "nodes do not answer", Untold: []string{"b"}},
	} {
		var out bytes.Buffer
		err := cli.PrintRepairPlan(&out, p)
		text := out.String()
		if err != nil || strings.Contains(text, "not told  b: ") != (name == "one is not") || strings.Contains(text, "(no node issues") != (name == "all are reached") {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
}
