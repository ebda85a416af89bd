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
	b.standsStill(t, func() {
		if out := leafOK(t, repair...); !strings.Contains(out, "not told") {
			t.Errorf("beside a node that stands still: %s", out)
		}
	})
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
	args := []string{"--stopped", "--wait", "10ms", "--apply"}
	b.standsStill(t, func() {
		if text := w.run(t, 4, "import", a, args...); !strings.Contains(text, "these nodes do not answer: ") {
			t.Errorf("beside a node that stands still the import says:\n%s", text)
		}
	})
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
