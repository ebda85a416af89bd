package cli_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/takeover"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// TestImportOfARowThatIsGone: the tag was used before the import, and its row was deleted with SQL, of which no entry of the audit
// log tells. Nodes drop what they hold of it all the same.
func TestImportOfARowThatIsGone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		byCommand bool
		again     string // where a command has made the row again, as an import does that is killed then
		below     bool   // the other service is below the end of what nodes hold
	}{"made by a command": {byCommand: true}, "made with SQL": {}, "made with SQL, and again": {again: "30000"}, "made with SQL, and above the other service": {below: true}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := server.Postgres(t)
			db, peers := cosid.start(t, d, 1)
			w := newSwitched(t, cosid, d, d)
			a, b := serve(t, w.dir, "--store", w.store), serve(t, dataDir(t), "--store", w.store)
			if tt.byCommand {
				leafOK(t, "tag", "create", "leaf-segment-test", "--start", "1", "--step", "5000", "--data-dir", w.dir)
			} else {
				execute(t, db, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('leaf-segment-test', 1, 5000)")
			}
			a.ids(t, 1)
			b.ids(t, 1)
			execute(t, db, "DELETE FROM leaf_alloc WHERE biz_tag = 'leaf-segment-test'")
			past := 20_000 // all that both nodes hold
			if tt.below {
				past = 3000
			}
			seen := peers[0].takes(t, past)
			want := takeover.Create
			if tt.again != "" {
				want = takeover.Raise
				leafOK(t, "tag", "create", "leaf-segment-test", "--start", tt.again, "--data-dir", w.dir)
				w.run(t, 2, "compare", a) // the node has issued numbers of the first row
			}
			args := []string{"--stopped", "--wait", "10ms", "--apply"}
			if tt.below { // a node that does not say up to where may know higher numbers
				b.standsStill(t, func() {
					if text := w.run(t, 5, "import", a, args...); !strings.Contains(text, "not every node can be asked") {
						t.Errorf("beside a node that stands still the import says:\n%s", text)
					}
				})
			}
			if plan := w.plan(t, 1, a, args...); plan.Action != want || plan.Verdict != takeover.Unknown {
				t.Errorf("got the plan %+v, want %s, and that it does not know what both handed out", plan, want)
			}
			apart(t, seen, a, b)
			found := 0
			if tt.byCommand { // the audit log goes on to say what both handed out
				found = 1
			}
			if again := w.plan(t, found, a, args...); again.Action != takeover.Nothing {
				t.Errorf("the second run: got the plan %+v, want nothing", again)
			}
		})
	}
}

// TestImportOfARowMadeAgainAsTheTextSays: the row was made and deleted with SQL, and its numbers end above the other service. Before
// the import the tag is made where leaf tag create says. What nodes hold from below that is the other service's all the same.
func TestImportOfARowMadeAgainAsTheTextSays(t *testing.T) {
	t.Parallel()
	for name, byNode := range map[string]bool{"a node carries out the import": true, "no node carries it out": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := server.Postgres(t)
			db, peers := cosid.start(t, d, 1)
			w := newSwitched(t, cosid, d, d)
			dir, on := dataDir(t), (*process)(nil)
			if byNode {
				dir = w.dir
			}
			node := serve(t, dir, "--store", w.store)
			if byNode {
				on = node
			}
			execute(t, db, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('leaf-segment-test', 1, 5000)")
			node.ids(t, 1)
			execute(t, db, "DELETE FROM leaf_alloc WHERE biz_tag = 'leaf-segment-test'")
			seen := peers[0].takes(t, 3000)
			says := regexp.MustCompile(`use --start (\d+) or more`).FindStringSubmatch(leafExits(t, 5, "tag", "create", "leaf-segment-test", "--data-dir", node.dir))
			if says == nil {
				t.Fatal("the refusal does not say what to type")
			}
			leafOK(t, "tag", "create", "leaf-segment-test", "--start", says[1], "--data-dir", node.dir)
			args := []string{"--stopped", "--wait", "10ms", "--apply"}
			if byNode {
				w.run(t, 2, "compare", on) // the node has issued numbers of the first row
			}
			if plan := w.plan(t, 1, on, args...); plan.Action != takeover.Raise || plan.Verdict != takeover.Unknown {
				t.Errorf("got the plan %+v, want that nodes drop what they hold, and that it does not know what both handed out", plan)
			}
			apart(t, seen, node)
			if again := w.plan(t, 0, on, args...); again.Action != takeover.Nothing {
				t.Errorf("the second run: got the plan %+v, want nothing", again)
			}
		})
	}
}

// TestImportOfARowMadeAgainAsTheDocumentSays: a node has taken a range of the row that was made again, beside what it holds of the
// earlier one, which no answer shows. docs/MIGRATION.md says what to type.
func TestImportOfARowMadeAgainAsTheDocumentSays(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/MIGRATION.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(strings.Join(strings.Fields(string(page)), " "), "made again since, run `leaf tag repair TAG` when the command has ended") {
		t.Fatal("docs/MIGRATION.md does not say what to do about a row that was made again")
	}
	d := server.Postgres(t)
	db, peers := cosid.start(t, d, 1)
	w := newSwitched(t, cosid, d, d)
	node := serve(t, w.dir, "--store", w.store)
	execute(t, db, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('leaf-segment-test', 1, 5000)")
	node.ids(t, 1)
	execute(t, db, "DELETE FROM leaf_alloc WHERE biz_tag = 'leaf-segment-test'")
	seen := peers[0].takes(t, 4900)
	leafOK(t, "tag", "create", "leaf-segment-test", "--start", "5001", "--data-dir", w.dir)
	for maxID := int64(0); maxID <= 5001; { // a load ahead of need
		node.ids(t, 1)
		if err := db.QueryRowContext(t.Context(), "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'leaf-segment-test'").Scan(&maxID); err != nil {
			t.Fatal(err)
		}
	}
	w.run(t, 0, "import", node, "--stopped", "--wait", "10ms", "--apply")
	leafOK(t, "tag", "repair", "leaf-segment-test", "--data-dir", w.dir)
	apart(t, seen, node)
}

// TestImportOfATagOfWhichNoLogTells: the tag was used before the import, its row is gone, and neither the audit log nor the command,
// which no node carries out, knows of it. Nodes drop what they hold of it all the same, also one that does not answer at first.
func TestImportOfATagOfWhichNoLogTells(t *testing.T) {
	t.Parallel()
	for name, bySQL := range map[string]bool{"deleted by a command, as no entry says now": false, "deleted with SQL": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := server.Postgres(t)
			db, peers := cosid.start(t, d, 1)
			w := newSwitched(t, cosid, d, d)
			a, b := serve(t, dataDir(t), "--store", w.store), serve(t, dataDir(t), "--store", w.store)
			execute(t, db, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('leaf-segment-test', 1, 5000)")
			a.ids(t, 1)
			if bySQL {
				execute(t, db, "DELETE FROM leaf_alloc WHERE biz_tag = 'leaf-segment-test'")
			} else {
				leafOK(t, "tag", "delete", "leaf-segment-test", "--yes", "--store", w.store, "--data-dir", w.dir)
				execute(t, db, "DELETE FROM leaf_audit")
			}
			seen := peers[0].takes(t, 20_000) // past all that the nodes hold
			args := []string{"--stopped", "--wait", "10ms", "--apply"}
			a.standsStill(t, func() {
				if text := w.run(t, 4, "import", nil, args...); !strings.Contains(text, "answer") {
					t.Errorf("beside a node that stands still the import says:\n%s", text)
				}
			})
			if plan := w.plan(t, 1, nil, args...); plan.Verdict != takeover.Unknown {
				t.Errorf("got the plan %+v, want that it does not know what both handed out", plan)
			}
			apart(t, seen, a, b)
			if again := w.plan(t, 0, nil, args...); again.Action != takeover.Nothing {
				t.Errorf("the run after that: got the plan %+v, want nothing", again)
			}
		})
	}
}

// TestImportBesideATagThatIsGone: the other service goes on, and the gap that it gets has numbers that a tag of this name has
// issued, whose row is gone. The audit log tells nothing of them: the import asks all nodes and the database.
func TestImportBesideATagThatIsGone(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		sql    bool // the row was made and deleted with SQL, and another node carries out the import
		delete string
	}{
		"deleted with SQL":                           {sql: true, delete: "DELETE FROM leaf_alloc WHERE biz_tag = 'leaf-segment-test'"},
		"deleted by a command, as no entry says now": {delete: "DELETE FROM leaf_audit"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := server.MariaDB(t)
			db, peers := cosid.start(t, d, 1)
			seen := distinct{}
			seen.add(t, peers[0].takes(t, 150))
			w := newSwitched(t, cosid, d, d)
			node := serve(t, dataDir(t), "--store", w.store)
			var on *process // that carries out the import
			if tt.sql {
				on = serve(t, w.dir, "--store", w.store)
				execute(t, db, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('leaf-segment-test', 2000, 100)")
			} else {
				leafOK(t, "tag", "create", "leaf-segment-test", "--start", "2000", "--step", "100", "--data-dir", node.dir)
			}
			seen.add(t, node.ids(t, 10))
			if !tt.sql {
				leafOK(t, "tag", "delete", "leaf-segment-test", "--yes", "--data-dir", node.dir)
			}
			execute(t, db, tt.delete)
			gap := []string{"--gap", "50000", "--wait", "10ms", "--apply"}
			if plan := w.plan(t, 5, on, gap...); plan.Action != takeover.Refuse || !strings.Contains(plan.Reason, "--stopped") {
				t.Errorf("got the plan %+v, want a refusal that says what to do", plan)
			}
			// What the refusal says. The statement stops the service where it stands.
			stopped := []string{"--stopped", "--wait", "10ms", "--apply"}
			plan := w.plan(t, 1, on, stopped...)
			if plan.Action != takeover.Create || len(plan.Stop) != 1 {
				t.Fatalf("got the plan %+v, want that it makes the tag above its earlier numbers, and one statement", plan)
			}
			if plan := w.plan(t, 5, on, gap...); plan.Action != takeover.Refuse {
				t.Errorf("where the tag was made again: got the plan %+v, want a refusal", plan)
			}
			if again := w.plan(t, 0, on, stopped...); again.Action != takeover.Nothing {
				t.Errorf("the run after that: got the plan %+v, want nothing", again)
			}
			execute(t, db, plan.Stop[0])
			more, err := peers[0].take(t.Context(), 10_000)
			if err == nil {
				t.Errorf("the other service goes on behind the statement, to %d", slices.Max(more))
			}
			seen.add(t, more)
		})
	}
}

// TestImportBesideWhereNodesCannotBeAsked: the other service goes on only if all nodes say that they know no number of the tag. One
// that stands still cannot, and without the tables of the repair none can.
func TestImportBesideWhereNodesCannotBeAsked(t *testing.T) {
	t.Parallel()
	d := server.MariaDB(t)
	db, _ := cosid.start(t, d, 1)
	w := newSwitched(t, cosid, d, d)
	node := serve(t, dataDir(t), "--store", w.store)
	leafOK(t, "tag", "create", "another", "--data-dir", node.dir) // the node is listed once it answers
	gap := []string{"--gap", "500", "--wait", "10ms", "--apply"}
	node.standsStill(t, func() {
		if out := w.run(t, 4, "import", nil, gap...); !strings.Contains(out, "Repeat the command when they answer; or stop the other service") {
			t.Errorf("beside a node that stands still: %s", out)
		}
	})
	w.plan(t, 0, nil, gap...)
	for _, statement := range []string{"DELETE FROM leaf_alloc", "DROP TABLE leaf_audit"} {
		execute(t, db, statement)
	}
	if out := w.run(t, 5, "import", nil, gap...); !strings.Contains(out, "the audit log, which says where the tag began, cannot be read") {
		t.Errorf("without the audit log: %s", out)
	}
	execute(t, db, "DROP TABLE leaf_repair, leaf_repair_node")
	for _, args := range [][]string{gap, {"--stopped", "--wait", "10ms", "--apply"}} {
		if out := w.run(t, 4, "import", nil, args...); !strings.Contains(out, "no usable tables leaf_repair and leaf_repair_node; run: leaf schema apply") {
			t.Errorf("without the tables of the repair: %s", out)
		}
	}
}
