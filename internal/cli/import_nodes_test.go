package cli_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/cli"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/takeover"
	"github.com/leaf-idgen/leaf/internal/test/server"
	"github.com/leaf-idgen/leaf/segment"
)

// apart fails if a node issues an ID that another service has handed out.
func apart(t *testing.T, seen []int64, nodes ...*process) {
	t.Helper()
	for _, n := range nodes {
		if id := n.ids(t, 1)[0]; id <= slices.Max(seen) {
			t.Errorf("the node of %s issues %d, and the other service had handed out all up to %d", n.dir, id, slices.Max(seen))
		}
	}
}

// TestImportFinishesARaise: an import was killed after it had raised the row, so no node was asked
// for the IDs from below that it holds. The next one does that, although the row is high enough.
func TestImportFinishesARaise(t *testing.T) {
	t.Parallel()
	d := server.Postgres(t)
	_, peers := cosid.start(t, d, 1)
	w := newSwitched(t, cosid, d, d)
	peers[0].takes(t, 10)
	w.plan(t, 0, nil, "--stopped", "--wait", "10ms", "--apply")
	node := serve(t, w.dir, "--store", w.store)
	node.ids(t, 1)
	const raised = 100_000
	peers[0].takes(t, 5000) // past the range that the node holds: why the import raised the tag
	leafOK(t, "tag", "set", "leaf-segment-test", "--max-id", fmt.Sprint(raised), "--data-dir", w.dir)
	if below := node.ids(t, 1)[0]; below >= raised {
		t.Fatalf("the node issues %d: it holds nothing from below, and the test cannot fail", below)
	}
	if plan := w.plan(t, 1, node, "--stopped", "--wait", "10ms", "--apply"); plan.Action != takeover.Raise {
		t.Errorf("got the plan %+v, want that it repairs the tag", plan)
	}
	if id := node.ids(t, 1)[0]; id < raised {
		t.Errorf("the node issues %d after the import, want %d or more", id, raised)
	}
	if again := w.plan(t, 1, node, "--stopped", "--wait", "10ms", "--apply"); again.Action != takeover.Nothing {
		t.Errorf("the run after that: got the plan %+v, want nothing", again)
	}
}

// TestImportOfATagInUse: the tag was used before the import, and its row is above the other service.
// What nodes hold in memory is not: they drop it, as they do where the row is deleted before.
func TestImportOfATagInUse(t *testing.T) {
	t.Parallel()
	d := server.Postgres(t)
	db, peers := cosid.start(t, d, 1)
	w := newSwitched(t, cosid, d, d)
	nodes := []*process{serve(t, w.dir, "--store", w.store), serve(t, dataDir(t), "--store", w.store)}
	leafOK(t, "tag", "create", "leaf-segment-test", "--start", "1", "--step", "5000", "--data-dir", w.dir)
	for _, n := range nodes {
		n.ids(t, 1)
	}
	caches := func(want int) { // no node can take away what is in the cache of a program
		t.Helper()
		if text := w.run(t, want, "import", nodes[0], "--stopped"); !strings.Contains(text, "restart the programs that keep IDs of the tag in memory") {
			t.Errorf("the plan does not say what to do with programs that have a cache:\n%s", text)
		}
	}
	seen := peers[0].takes(t, 3000)
	caches(1)
	if plan := w.plan(t, 1, nodes[0], "--stopped", "--wait", "10ms", "--apply"); plan.Action != takeover.Raise || plan.Row <= slices.Max(seen) {
		t.Errorf("got the plan %+v, want that it repairs a tag that is ahead of %d", plan, slices.Max(seen))
	}
	apart(t, append(seen, peers[0].held...), nodes...)
	if again := w.plan(t, 1, nodes[0], "--stopped", "--wait", "10ms", "--apply"); again.Action != takeover.Nothing {
		t.Errorf("the second run: got the plan %+v, want nothing", again)
	}

	leafOK(t, "tag", "delete", "leaf-segment-test", "--yes", "--data-dir", w.dir)
	seen = append(seen, peers[0].takes(t, 30_000)...) // past all that the tag had
	if out := w.run(t, 1, "compare", nodes[0]); !strings.Contains(out, "handed out by both services") {
		t.Errorf("what the deleted tag handed out is not compared:\n%s", out)
	}
	caches(1)
	if plan := w.plan(t, 1, nodes[0], "--stopped", "--wait", "10ms", "--apply"); plan.Action != takeover.Create || plan.Numbers == 0 {
		t.Errorf("got the plan %+v, want that it creates the tag and says what both handed out", plan)
	}
	apart(t, seen, nodes...)

	execute(t, db, "DELETE FROM leaf_audit") // its entries are older than audit.keep
	leafOK(t, "tag", "delete", "leaf-segment-test", "--yes", "--data-dir", w.dir)
	if text := w.run(t, 1, "import", nodes[0], "--stopped"); !strings.Contains(text, "can have been handed out by both services: the audit log does not say where the tag began") {
		t.Errorf("the import says nothing of what the deleted tag may have handed out:\n%s", text)
	}
}

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
				signal := func(s syscall.Signal) {
					if err := b.cmd.Process.Signal(s); err != nil {
						t.Fatal(err)
					}
				}
				signal(syscall.SIGSTOP)
				if text := w.run(t, 5, "import", a, args...); !strings.Contains(text, "not every node can be asked") {
					t.Errorf("beside a node that stands still the import says:\n%s", text)
				}
				signal(syscall.SIGCONT)
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
			signal := func(s syscall.Signal) {
				if err := a.cmd.Process.Signal(s); err != nil {
					t.Fatal(err)
				}
			}
			args := []string{"--stopped", "--wait", "10ms", "--apply"}
			signal(syscall.SIGSTOP)
			if text := w.run(t, 4, "import", nil, args...); !strings.Contains(text, "answer") {
				t.Errorf("beside a node that stands still the import says:\n%s", text)
			}
			signal(syscall.SIGCONT)
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
	signal := func(s syscall.Signal) {
		if err := node.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	if out := w.run(t, 4, "import", nil, gap...); !strings.Contains(out, "Repeat the command when they answer; or stop the other service") {
		t.Errorf("beside a node that stands still: %s", out)
	}
	signal(syscall.SIGCONT)
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

// TestImportOfANameThatIsNoTag: the name of a counter can be longer than that of a tag. The refusal says how to name the tag.
func TestImportOfANameThatIsNoTag(t *testing.T) {
	t.Parallel()
	d := server.MariaDB(t)
	db, _ := cosid.start(t, d, 1)
	w := newSwitched(t, cosid, d, d)
	execute(t, db, "ALTER TABLE cosid MODIFY name varchar(200) NOT NULL")
	execute(t, db, "INSERT INTO cosid (name) VALUES (REPEAT('x', 200))")
	w.args = slices.Concat(w.args[:3], w.args[5:]) // a tag for each counter
	for command, want := range map[string]int{"import": 5, "compare": 2} {
		if out := w.run(t, want, command, nil); !strings.Contains(out, "name one with --tag TAG=NAME") {
			t.Errorf("%s: %s", command, out)
		}
	}
}

// TestOtherNumberingAsTheDocumentSays types what docs/MIGRATION.md says about a service that no command reads, where the tag is in
// use: nodes hold IDs of it that the service may have handed out, and one of them does not answer at first.
func TestOtherNumberingAsTheDocumentSays(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/MIGRATION.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "**Any other numbering**")
	section, _, _ = strings.Cut(section, "**IDs made of the time**")
	commands := regexp.MustCompile(`(?m)^    leaf (tag repair order --above 5000000)$`).FindStringSubmatch(section)
	if commands == nil || !strings.HasPrefix(strings.Join(strings.Fields(section), " "), ", such as CosId on Redis: stop all that takes numbers from it") {
		t.Fatalf("docs/MIGRATION.md does not say to stop the service, or what to type:\n%s", section)
	}
	at := []string{"--store", server.Postgres(t).URL()}
	leafOK(t, append([]string{"schema", "apply", "--data-dir", dataDir(t)}, at...)...)
	a, b := serve(t, dataDir(t), at...), serve(t, dataDir(t), at...)
	leafOK(t, "tag", "create", "leaf-segment-test", "--step", "5000", "--data-dir", a.dir)
	a.ids(t, 1)
	b.ids(t, 1)
	repair := append(strings.Fields(strings.ReplaceAll(commands[1], "order", "leaf-segment-test")), "--data-dir", a.dir)
	signal := func(s syscall.Signal) {
		if err := b.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	if out := leafOK(t, repair...); !strings.Contains(out, "not told") {
		t.Errorf("beside a node that stands still: %s", out)
	}
	signal(syscall.SIGCONT)
	if out := leafOK(t, repair...); strings.Contains(out, "not told") {
		t.Errorf("once the node answers: %s", out)
	}
	apart(t, []int64{5_000_000}, a, b)
}

// TestImportBesideANodeThatDoesNotAnswer: a repair waits for no node under the cluster fence. One that stands still meanwhile
// holds IDs that the other service has handed out. The import names it, and is not done before it has answered.
func TestImportBesideANodeThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	d, ns := server.MariaDB(t), server.Etcd(t)
	_, peers := cosid.start(t, d, 1)
	w := newSwitched(t, cosid, d, d)
	shared := []string{"--no-snowflake-enable", "--store", w.store, "--segment-cluster-fence", "etcd://" + strings.Join(ns.Servers, ",") + "/" + strings.Trim(ns.Root, "/")}
	a, b := serve(t, w.dir, shared...), serve(t, dataDir(t), shared...)
	leafOK(t, "tag", "create", "leaf-segment-test", "--start", "1", "--step", "5000", "--data-dir", w.dir)
	a.ids(t, 1)
	b.ids(t, 1)
	awaitFenceOnTheBoard(t, w.store, 2)
	seen := append(peers[0].takes(t, 20_000), peers[0].held...) // past all that both nodes hold
	signal := func(s syscall.Signal) {
		if err := b.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	signal(syscall.SIGSTOP)
	args := []string{"--stopped", "--wait", "10ms", "--apply"}
	if text := w.run(t, 4, "import", a, args...); !strings.Contains(text, "these nodes do not answer: ") {
		t.Errorf("beside a node that stands still the import says:\n%s", text)
	}
	signal(syscall.SIGCONT)
	if plan := w.plan(t, 1, a, args...); plan.Action != takeover.Raise {
		t.Errorf("got the plan %+v, want that it repairs the tag once more", plan)
	}
	apart(t, seen, a, b)
	if again := w.plan(t, 1, a, args...); again.Action != takeover.Nothing {
		t.Errorf("the run after that: got the plan %+v, want nothing", again)
	}
}

// TestImportWhileANodeStops: the row of a tag that was used is above the other service. Before the import asks the nodes, one of
// them stops and returns unused IDs: the row goes back below the other service, and a repair alone goes on there.
func TestImportWhileANodeStops(t *testing.T) {
	t.Parallel()
	d := server.Postgres(t)
	db, peers := cosid.start(t, d, 1)
	w := newSwitched(t, cosid, d, d)
	a, b := serve(t, w.dir, "--store", w.store), serve(t, dataDir(t), "--store", w.store)
	execute(t, db, "INSERT INTO cosid (name, last_max_id) VALUES ('shop.first', 100)")
	w.args = append(w.args, "--tag", "first=shop.first") // a tag before the other one, whose nodes are asked for seconds
	leafOK(t, "tag", "create", "first", "--start", "1", "--data-dir", w.dir)
	leafOK(t, "tag", "create", "leaf-segment-test", "--start", "1", "--step", "5000", "--data-dir", w.dir)
	a.ids(t, 1)
	b.ids(t, 1)
	seen := peers[0].takes(t, 8000) // past what the node has issued that stops, and not past what it holds
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.run(t, 1, "import", a, "--stopped", "--wait", "10ms", "--apply")
	}()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		asked := 0
		if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM leaf_repair WHERE biz_tag = 'first'").Scan(&asked); err != nil || time.Now().After(deadline) {
			t.Fatal("no node is asked for the first tag: ", err)
		}
		if asked > 0 {
			break
		}
	}
	b.end(t, syscall.SIGTERM)
	<-done
	apart(t, seen, a)
}

// node is a manage.Backend that repairs a tag with a row, and loads ranges of it meanwhile.
type node struct {
	row   int64   // max_id
	loads []int64 // how far each repair finds the row to have gone since it read it
}

func (n *node) Do(_ context.Context, request any) (any, error) {
	switch q := request.(type) {
	case manage.RepairTag:
		plan := segment.RepairPlan{Row: n.row, Above: n.row}
		if len(n.loads) > 0 {
			n.row, n.loads = n.row+n.loads[0], n.loads[1:]
		}
		n.row++
		plan.First = n.row
		return manage.Repair{Plan: plan}, nil
	case manage.SetTag:
		if *q.MaxID <= n.row {
			return nil, leaf.ErrConflict
		}
		n.row = *q.MaxID
		return nil, nil
	}
	return nil, leaf.ErrBadRequest
}

// TestImportWhileNodesLoad: the row went back before the repair of an import read it, and nodes took ranges while the repair
// listened to them: IDs go on above those of the other service then, and the nodes hold ranges from below.
func TestImportWhileNodesLoad(t *testing.T) {
	t.Parallel()
	const first = 10_000
	for name, n := range map[string]*node{
		"nothing happens":        {row: first},
		"a return":               {row: first - 400},
		"a return and loads":     {row: first - 400, loads: []int64{500}},
		"a return, loads, twice": {row: first - 4000, loads: []int64{500, 500}},
	} {
		r, err := cli.DropBelow(t.Context(), n, "order", first)
		if err != nil || r.Plan.Above < first-1 {
			t.Errorf("%s: nodes drop what they hold up to %d, %v; want all below %d", name, r.Plan.Above, err, first)
		}
	}
}
