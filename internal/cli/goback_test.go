package cli_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// wayBack returns what docs/MIGRATION.md says about the way back, up to end, without line breaks.
func wayBack(t *testing.T, end string) string {
	t.Helper()
	page, err := os.ReadFile("../../docs/MIGRATION.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, says := strings.Cut(string(page), "**Go back.**")
	section, _, ends := strings.Cut(section, end)
	if !says || !ends {
		t.Fatalf("docs/MIGRATION.md has no paragraph on the way back that ends with %q", end)
	}
	return strings.Join(strings.Fields(section), " ")
}

// TestGoBackOfALatchedTag types what docs/MIGRATION.md says about the way back, before and after the
// stop of the nodes, where the database has lost commits. The number for the other service lies above
// every ID that was issued.
func TestGoBackOfALatchedTag(t *testing.T) {
	t.Parallel()
	r := newRestoredTable(t)
	section := wayBack(t, "\n\n")
	runs, stopped, ok := strings.Cut(section, "top the nodes cleanly")
	if !ok {
		t.Fatalf("docs/MIGRATION.md does not say when to stop the nodes:\n%s", section)
	}
	typed := func(text string, at ...string) (last string) { // what shows max_id
		for _, span := range codeSpan.FindAllStringSubmatch(text, -1) {
			if words := strings.Fields(strings.ReplaceAll(span[1], "TAG", "leaf-segment-test")); words[0] == "leaf" {
				if out := leafOK(t, append(append(words[1:], "--json", "--data-dir", r.nodes[0].dir), at...)...); strings.Contains(out, "max_id") {
					last = out
				}
			}
		}
		return last
	}
	typed(runs)
	for _, p := range r.nodes {
		p.end(t, syscall.SIGTERM)
	}
	var tag struct {
		MaxID int64 `json:"max_id,string"`
	}
	if shown := typed(stopped, r.args[:2]...); json.Unmarshal([]byte(shown), &tag) != nil || tag.MaxID <= r.highest {
		t.Errorf("the other service would go on from %d, and %d was issued; the last command shows: %s", tag.MaxID, r.highest, shown)
	}
}

// TestGoBackBesideAServiceThatRuns takes the steps of the way back, in the order of docs/MIGRATION.md, where the other service was
// left running, and asks for numbers before each step.
func TestGoBackBesideAServiceThatRuns(t *testing.T) {
	t.Parallel()
	section := wayBack(t, "| service |")
	d := server.MariaDB(t)
	db, peers := cosid.start(t, d, 1)
	store := server.MariaDB(t)
	w := newSwitched(t, cosid, store, d)
	node := serve(t, w.dir, "--store", w.store)
	seen := distinct{}
	seen.add(t, peers[0].takes(t, 50))
	plan := w.plan(t, 0, node, "--gap", "500", "--wait", "10ms", "--apply")
	execute(t, db, plan.Stop[0])
	seen.add(t, node.ids(t, 700))
	type step struct {
		says string
		run  func()
	}
	steps := []step{
		{"top the nodes cleanly", func() { node.end(t, syscall.SIGTERM) }},
		{"top the other service", func() { peers = nil }},
		{"rop the constraint", func() { dropChecks(t, db) }},
		{"ove the other service above Leaf", func() {
			var maxID int64
			if err := store.Open(t).QueryRowContext(t.Context(), "SELECT max_id FROM leaf_alloc WHERE biz_tag = 'leaf-segment-test'").Scan(&maxID); err != nil {
				t.Fatal(err)
			}
			execute(t, db, fmt.Sprintf(cosid.back, maxID))
		}},
	}
	slices.SortStableFunc(steps, func(a, b step) int { return strings.Index(section, a.says) - strings.Index(section, b.says) })
	for _, s := range steps {
		if !strings.Contains(section, s.says) {
			t.Errorf("docs/MIGRATION.md does not say %q", s.says)
			continue
		}
		for _, p := range peers { // up to where the statement stops it
			ids, _ := p.take(t.Context(), 1000)
			seen.add(t, ids)
		}
		s.run()
	}
	seen.add(t, cosid.open(db).takes(t, 150))
}

// TestGoBackBesideANodeThatIsStartedAgain takes the steps of the way back, in the order of docs/MIGRATION.md, where a supervisor
// starts a node again as soon as it has stopped, and a client goes on asking. The number for the other service lies above all
// that the node issues.
func TestGoBackBesideANodeThatIsStartedAgain(t *testing.T) {
	t.Parallel()
	section := wayBack(t, "| service |")
	store, dir, operator := server.MariaDB(t).URL(), dataDir(t), dataDir(t)
	typed := func(command string) string {
		return leafOK(t, append(strings.Fields(strings.ReplaceAll(command, "TAG", "leaf-segment-test")), "--store", store, "--data-dir", operator)...)
	}
	typed("schema apply")
	typed("tag create TAG --step 10 --fixed-step")
	node := serve(t, dir, "--store", store)
	node.ids(t, 5)
	var tag struct {
		MaxID int64 `json:"max_id,string"`
	}
	refused := make(chan struct{})
	highest := int64(0)
	var err error // of the client
	steps := map[string]func(){
		"top the nodes cleanly": func() {
			node.end(t, syscall.SIGTERM)
			again := serve(t, dir, "--store", store)
			go func() {
				defer close(refused)
				for status := http.StatusOK; status != http.StatusForbidden; {
					var body string
					if status, body, err = httpGet(again.addr, "/api/segment/get/leaf-segment-test"); err != nil {
						return
					}
					if id, err := strconv.ParseInt(body, 10, 64); err == nil && status == http.StatusOK {
						highest = max(highest, id)
					}
				}
			}()
		},
		"`leaf limit set TAG --block`": func() { typed("limit set TAG --block") },
		"`leaf tag show TAG`": func() {
			if err := json.Unmarshal([]byte(typed("tag show TAG --json")), &tag); err != nil {
				t.Fatal(err)
			}
		},
	}
	says := slices.SortedFunc(maps.Keys(steps), func(a, b string) int { return strings.Index(section, a) - strings.Index(section, b) })
	for _, text := range says {
		if !strings.Contains(section, text) {
			t.Fatalf("docs/MIGRATION.md does not say %q", text)
		}
		steps[text]()
	}
	<-refused
	if err != nil || highest >= tag.MaxID {
		t.Errorf("the other service would go on from %d, and a node that was started again has issued %d; %v", tag.MaxID, highest, err)
	}
}
