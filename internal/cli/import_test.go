package cli_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/cli"
	"github.com/leaf-idgen/leaf/internal/takeover"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// leafExits runs a command in this process and returns what it prints. It fails the test if the
// exit code is another one.
func leafExits(t *testing.T, want int, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if code := cli.Run(t.Context(), cli.Process{Args: args, Stdout: &out, Stderr: &out, Environ: []string{"HOME=" + t.TempDir(), patient}}); code != want {
		t.Fatalf("leaf %s: exit code %d, want %d: %s", strings.Join(args, " "), code, want, out.String())
	}
	return out.String()
}

// switched is Leaf beside another service. Its tag is the one that process.ids takes IDs of.
type switched struct {
	store, dir string
	args       []string // of import and compare
}

func newSwitched(t *testing.T, s service, store server.Database, old ...server.Database) *switched {
	t.Helper()
	w := &switched{store: store.URL(), dir: dataDir(t)}
	leafOK(t, "schema", "apply", "--store", w.store, "--data-dir", w.dir)
	w.args = []string{s.kind, "--from-file", urlFile(t, old...), "--tag", "leaf-segment-test=" + s.name, "--data-dir", w.dir}
	return w
}

// run runs import or compare where no node runs, and with on beside the node there.
func (w *switched) run(t *testing.T, want int, command string, on *process, more ...string) string {
	t.Helper()
	args := append(append([]string{command}, w.args...), more...)
	if on == nil {
		args = append(args, "--store", w.store)
	}
	return leafExits(t, want, args...)
}

// plan returns the plan of the tag.
func (w *switched) plan(t *testing.T, want int, on *process, more ...string) takeover.Plan {
	t.Helper()
	_, text, _ := strings.Cut(w.run(t, want, "import", on, append(more, "--json")...), "{") // standard error comes first
	var reply struct{ Tags []takeover.Plan }
	if err := json.NewDecoder(strings.NewReader("{" + text)).Decode(&reply); err != nil || len(reply.Tags) != 1 {
		t.Fatalf("%v in %s", err, text)
	}
	return reply.Tags[0]
}

// TestImportAcrossTheSwitch leaves another service as docs/MIGRATION.md says, and goes back to it.
// Its servers hand out numbers before, programs still hold some when Leaf begins, and a server is
// started again by mistake. No number is handed out twice.
func TestImportAcrossTheSwitch(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		service  service
		old, new func(testing.TB) server.Database
	}{
		{"tinyid on MariaDB", tinyid, server.MariaDB, server.MariaDB},
		{"cosid on MySQL", cosid, server.MySQL, server.MySQL},
		{"the Java server on MariaDB, to PostgreSQL", java, server.MariaDB, server.Postgres},
		{"identity on PostgreSQL", identity, server.Postgres, server.Postgres},
		{"AUTO_INCREMENT on MySQL", autoIncrement, server.MySQL, server.MySQL},
		{"a sequence of PostgreSQL that counts the ends of ranges", blocksBelow, server.Postgres, server.Postgres},
		{"a sequence of MariaDB that counts the beginnings of ranges", blocksAbove, server.MariaDB, server.MariaDB},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, database := tt.service, tt.old(t)
			db, peers := s.start(t, database, 2)
			w := newSwitched(t, s, tt.new(t), database)
			seen := distinct{}
			for _, p := range peers {
				seen.add(t, p.takes(t, 130))
			}

			plan := w.plan(t, 0, nil)
			if plan.Action != takeover.Create {
				t.Fatalf("got the plan %+v, want that it creates the tag", plan)
			}
			leafExits(t, 3, "tag", "show", "leaf-segment-test", "--store", w.store, "--data-dir", w.dir)
			if out := w.run(t, 2, "import", nil, "--apply"); !strings.Contains(out, "--stopped") {
				t.Errorf("without a word on the other service: %s", out)
			}
			w.refusedWhileItRuns(t, peers[1], seen)

			// The servers are stopped. What programs hold, they hand out later.
			plan = w.plan(t, 0, nil, "--stopped", "--wait", "10ms", "--apply")
			if again := w.plan(t, 0, nil, "--stopped", "--wait", "10ms", "--apply"); again.Action != takeover.Nothing {
				t.Errorf("the second run: got the plan %+v, want nothing", again)
			}
			if len(plan.Stop) != 1 {
				t.Fatalf("got the statements %q, want one", plan.Stop)
			}
			execute(t, db, plan.Stop[0])

			node := serve(t, w.dir, "--store", w.store)
			ours := w.issue(t, node, db, s, 700)
			seen.add(t, ours)
			for _, p := range peers {
				held := slices.Clone(p.held)
				p.held = nil
				seen.add(t, held)
				more, err := p.take(t.Context(), 1000)
				if err == nil {
					t.Errorf("the other service goes on behind the statement, to %d", slices.Max(more))
				}
				seen.add(t, more)
			}
			seen.add(t, w.issue(t, node, db, s, 700))
			if s.name == autoIncrement.name {
				w.run(t, 2, "compare", node)
			} else {
				w.run(t, 0, "compare", node)
			}

			// Back: the nodes are stopped, the statement is taken away.
			node.end(t, syscall.SIGTERM)
			seen.add(t, s.goBack(t, db, w))
			for range 3 {
				seen.add(t, s.open(db).takes(t, 50))
			}
			again := serve(t, w.dir, "--store", w.store) // for other tags
			if status, body, err := httpGet(again.addr, "/api/segment/get/leaf-segment-test"); err != nil || status == http.StatusOK {
				t.Errorf("a node that is started again gives an ID beside the other service: %d %s, %v", status, body, err)
			}
			again.end(t, syscall.SIGTERM)
		})
	}
}

// issue takes IDs of a node. Where the service numbers rows, they are inserted into its table.
func (w *switched) issue(t *testing.T, node *process, db *sql.DB, s service, n int) []int64 {
	t.Helper()
	ids := node.ids(t, n)
	if s.kind == "autoincrement" {
		for _, id := range []int64{slices.Min(ids), slices.Max(ids)} {
			execute(t, db, fmt.Sprintf("INSERT INTO orders (id, note) VALUES (%d, 'of Leaf')", id))
		}
	}
	return ids
}

// refusedWhileItRuns says that the other service is stopped while it hands out numbers.
func (w *switched) refusedWhileItRuns(t *testing.T, p *peer, seen distinct) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	var ids []int64
	running.Go(func() {
		for ctx.Err() == nil {
			more, err := p.take(context.WithoutCancel(ctx), 250)
			if err != nil {
				t.Error(err)
				return
			}
			ids = append(ids, more...)
		}
	})
	if out := w.run(t, 5, "import", nil, "--stopped", "--wait", "300ms", "--apply"); !strings.Contains(out, "is not stopped") {
		t.Errorf("beside a service that runs: %s", out)
	}
	stop()
	running.Wait()
	seen.add(t, ids)
	leafExits(t, 3, "tag", "show", "leaf-segment-test", "--store", w.store, "--data-dir", w.dir)
}

// goBack moves the other service above Leaf, as docs/MIGRATION.md says. A node is started again between the two commands that
// the page names, and stopped. It returns the IDs that this node gives.
func (s service) goBack(t *testing.T, db *sql.DB, w *switched) (ids []int64) {
	t.Helper()
	page, err := os.ReadFile("../../docs/MIGRATION.md")
	if err != nil {
		t.Fatal(err)
	}
	says := strings.NewReplacer("%d", "N", "%[1]d", "N", "'"+s.name+"'", "'NAME'", " "+s.name+" ", " NAME ").Replace(s.back)
	if !strings.Contains(string(page), "`"+says+"`") {
		t.Errorf("docs/MIGRATION.md does not say %q", says)
	}
	if s.more > 0 && !strings.Contains(string(page), "that number plus the increment") {
		t.Error("docs/MIGRATION.md does not say to add the increment")
	}
	var tag struct {
		MaxID int64 `json:"max_id,string"`
	}
	_, section, _ := strings.Cut(string(page), "**Go back.**")
	show, block := strings.Index(section, "`leaf tag show TAG`"), strings.Index(section, "`leaf limit set TAG --block`")
	if show < 0 || block < 0 {
		t.Fatal("docs/MIGRATION.md does not say how to read max_id of a tag, and to block it")
	}
	type command struct {
		at  int
		run func()
	}
	commands := []command{
		{show, func() {
			if err := json.Unmarshal([]byte(leafOK(t, "tag", "show", "leaf-segment-test", "--json", "--store", w.store, "--data-dir", w.dir)), &tag); err != nil {
				t.Fatal(err)
			}
		}},
		{block, func() {
			leafOK(t, "limit", "set", "leaf-segment-test", "--block", "--store", w.store, "--data-dir", w.dir)
		}},
	}
	slices.SortFunc(commands, func(a, b command) int { return a.at - b.at })
	commands[0].run()
	again := serve(t, w.dir, "--store", w.store)
	if status, body, err := httpGet(again.addr, "/api/segment/get/leaf-segment-test"); err != nil {
		t.Fatal(err)
	} else if id, err := strconv.ParseInt(body, 10, 64); status == http.StatusOK && err == nil {
		ids = append(ids, id)
	}
	again.end(t, syscall.SIGTERM)
	commands[1].run()
	if s.kind != "autoincrement" {
		dropChecks(t, db)
	}
	execute(t, db, fmt.Sprintf(s.back, tag.MaxID+s.more))
	return ids
}

// dropChecks drops the constraints that the statement of a plan has added.
func dropChecks(t *testing.T, db *sql.DB) {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT table_name, constraint_name FROM information_schema.table_constraints WHERE constraint_type = 'CHECK' AND constraint_schema = DATABASE()")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var statements []string
	for rows.Next() {
		var table, name string
		if err := rows.Scan(&table, &name); err != nil {
			t.Fatal(err)
		}
		statements = append(statements, fmt.Sprintf("ALTER TABLE %s DROP CONSTRAINT `%s`", table, name))
	}
	if err := rows.Err(); err != nil || len(statements) == 0 {
		t.Fatalf("no constraint to drop; %v", err)
	}
	for _, s := range statements {
		execute(t, db, s)
	}
}

// TestImportBeside leaves the other service running. It comes near, which compare says, and passes
// the first number of Leaf; what a node holds from there is dropped when the tag is raised.
func TestImportBeside(t *testing.T) {
	t.Parallel()
	d := server.MariaDB(t)
	db, peers := tinyid.start(t, d, 1)
	old := peers[0]
	w := newSwitched(t, tinyid, d, d)
	node := serve(t, w.dir, "--store", w.store)
	if out := w.run(t, 0, "compare", node); !strings.Contains(out, "no tag") {
		t.Errorf("without a tag: %s", out)
	}
	seen := distinct{}
	seen.add(t, old.takes(t, 150))
	w.plan(t, 0, node, "--gap", "500", "--wait", "10ms", "--apply", "--step", "50")
	seen.add(t, old.takes(t, 250))
	ours := node.ids(t, 30)
	seen.add(t, ours)
	out := w.run(t, 0, "compare", node)
	if !strings.Contains(out, "apart") {
		t.Errorf("side by side: %s", out)
	}
	if again := w.plan(t, 0, node, "--gap", "500", "--wait", "10ms", "--apply"); again.Action != takeover.Nothing {
		t.Errorf("the second run: got the plan %+v, want nothing", again)
	}

	watch, found := w.watch(t, node), w.watch(t, node)
	watch.end()
	if code := <-watch.code; code != 0 || strings.Count(watch.out.String(), "MEETS IN") != 2 {
		t.Errorf("interrupted: exit code %d: %s; want 0, and what it saw at first and at last", code, watch.out.String())
	}
	both := old.takes(t, 700) // past the first number of Leaf
	if !slices.Contains(both, ours[0]) {
		t.Fatalf("the other service did not reach %d: the test no longer tests what it says", ours[0])
	}
	if code := <-found.code; code != 1 || !strings.Contains(found.out.String(), "meet") || !strings.Contains(found.out.String(), fmt.Sprintf("%d to", ours[0])) {
		t.Errorf("after they met: exit code %d: %s; want 1", code, found.out.String())
	}
	// Everything that was in use by both is named. The node holds numbers below the new end.
	plan := w.plan(t, 1, node, "--stopped", "--wait", "10ms", "--apply")
	if plan.Action != takeover.Raise || plan.Both.Lo != ours[0] || plan.Both.Hi <= slices.Max(ours) {
		t.Errorf("got the plan %+v, want that it raises the tag and names %d to %d", plan, ours[0], slices.Max(ours))
	}
	seen = distinct{}
	seen.add(t, both)
	seen.add(t, old.held)
	seen.add(t, node.ids(t, 200))
	execute(t, db, "DELETE FROM tiny_id_info")
	if out := w.run(t, 2, "compare", node); !strings.Contains(out, "names no counter") {
		t.Errorf("without its row: %s", out)
	}
}

// watching is a comparison that goes on.
type watching struct {
	out  syncBuffer
	code chan int
	end  func()
}

// watch starts a comparison, and returns when it has looked once.
func (w *switched) watch(t *testing.T, on *process) *watching {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	c := &watching{code: make(chan int, 1), end: end}
	go func() {
		c.code <- cli.Run(ctx, cli.Process{Args: append([]string{"compare", "--for", "1h", "--every", "100ms"}, w.args...), Stdout: &c.out, Stderr: &c.out, Environ: []string{"HOME=/none", patient}})
	}()
	for !strings.Contains(c.out.String(), "apart") {
		select {
		case code := <-c.code:
			t.Fatalf("beside %s: exit code %d: %s", on.dir, code, c.out.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	return c
}

// TestPlanWhereCheckIsIgnored: the plan for a service that no CHECK stops says what stops it.
func TestPlanWhereCheckIsIgnored(t *testing.T) {
	old := []takeover.Counter{{End: 100, State: "order", From: "there", Unchecked: "5.7.44"}}
	for stopped, want := range map[bool]string{
		true:  "to be sure     take the right to UPDATE its table from the other service's user: its server, version \"5.7.44\", ignores CHECK\n",
		false: "plan           refused: the server of the other service, version \"5.7.44\", ignores CHECK",
	} {
		var out bytes.Buffer
		p := takeover.NewPlan("order", takeover.Row{}, old, takeover.Options{Gap: 50, Stopped: stopped})
		if err := cli.PrintPlans(&out, []takeover.Plan{p}, false); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !strings.Contains(got, want) || strings.Contains(got, "to be sure") != stopped {
			t.Errorf("stopped %v: got\n%s\nwant %q", stopped, got, want)
		}
	}
}

// TestImportRaisesAnUnusedTag: the other service went on after an import, and no ID of the tag was
// taken meanwhile. Nothing was handed out twice, so raising the tag is no finding.
func TestImportRaisesAnUnusedTag(t *testing.T) {
	t.Parallel()
	d := server.Postgres(t)
	_, peers := cosid.start(t, d, 1)
	w := newSwitched(t, cosid, d, d)
	seen := distinct{}
	seen.add(t, peers[0].takes(t, 10))
	w.plan(t, 0, nil, "--stopped", "--wait", "10ms", "--apply")
	seen.add(t, peers[0].takes(t, 500))
	if out := w.run(t, 1, "compare", nil); !strings.Contains(out, "will meet") {
		t.Errorf("behind the other service: %s", out)
	}
	if plan := w.plan(t, 0, nil, "--stopped", "--wait", "10ms", "--apply"); plan.Action != takeover.Raise || plan.Verdict != takeover.WillMeet {
		t.Errorf("got the plan %+v, want that it raises the tag", plan)
	}
	w.run(t, 0, "compare", nil)
	node := serve(t, w.dir, "--store", w.store)
	seen.add(t, node.ids(t, 700))
	seen.add(t, peers[0].held)
}

// TestImportOfADeletedTag types what the refusal says where a deleted tag has handed out numbers above the other service.
func TestImportOfADeletedTag(t *testing.T) {
	t.Parallel()
	database := server.MariaDB(t)
	tinyid.start(t, database, 1)
	w := newSwitched(t, tinyid, server.MariaDB(t), database)
	at := []string{"--store", w.store, "--data-dir", w.dir}
	leafOK(t, append([]string{"tag", "create", "leaf-segment-test", "--start", "500000"}, at...)...)
	leafOK(t, append([]string{"tag", "delete", "leaf-segment-test", "--yes"}, at...)...)
	out := w.run(t, 5, "import", nil, "--stopped", "--wait", "10ms", "--apply")
	says := regexp.MustCompile(`use --start (\d+) or more.*make it with leaf tag create TAG --start N, and repeat this command`).FindStringSubmatch(out)
	if says == nil {
		t.Fatalf("the refusal does not say what to type: %s", out)
	}
	leafOK(t, append([]string{"tag", "create", "leaf-segment-test", "--start", says[1]}, at...)...)
	w.run(t, 0, "import", nil, "--stopped", "--wait", "10ms", "--apply")
	if plan := w.plan(t, 0, nil, "--stopped", "--wait", "10ms", "--apply"); plan.Action != takeover.Nothing || plan.Row < 500000 {
		t.Errorf("after that: got the plan %+v, want nothing", plan)
	}
}
