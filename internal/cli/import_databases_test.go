package cli_test

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// TestImportTwoDatabases: tinyid with two databases hands out odd numbers from one and even ones
// from the other. The tag begins above both, and not while one of them is not named.
func TestImportTwoDatabases(t *testing.T) {
	t.Parallel()
	odd, even := tinyid, tinyid
	odd.create, even.create = []string{tinyidTable, fmt.Sprintf(tinyidRow, 2, 1)}, []string{tinyidTable, fmt.Sprintf(tinyidRow, 2, 0)}
	one, two, store := server.MariaDB(t), server.MariaDB(t), server.MariaDB(t)
	_, a := odd.start(t, one, 1)
	_, b := even.start(t, two, 1)
	seen := distinct{}
	seen.add(t, a[0].takes(t, 20))
	seen.add(t, b[0].takes(t, 900)) // and is the higher one
	half := newSwitched(t, tinyid, store, one)
	if out := half.run(t, 5, "import", nil, "--stopped", "--apply"); !strings.Contains(out, "further databases") {
		t.Errorf("with one database of two: %s", out)
	}
	w := newSwitched(t, tinyid, store, one, two)
	w.plan(t, 0, nil, "--stopped", "--wait", "10ms", "--apply")
	if out := half.run(t, 2, "compare", nil); !strings.Contains(out, "further databases") {
		t.Errorf("compare with one database of two: %s", out)
	}
	node := serve(t, w.dir, "--store", w.store)
	seen.add(t, node.ids(t, 500))
	seen.add(t, a[0].held)
	seen.add(t, b[0].held)
}

// TestImportOfSequencesInTurns leaves servers whose sequences count in turns, and goes back to them as docs/MIGRATION.md says.
func TestImportOfSequencesInTurns(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/MIGRATION.md")
	if err != nil {
		t.Fatal(err)
	}
	databases := []server.Database{server.Postgres(t), server.Postgres(t)}
	w := newSwitched(t, blocksBelow, server.MariaDB(t), databases...)
	seen := distinct{}
	var servers []*sql.DB
	take := func(i, n int) {
		for range n {
			var id int64
			if err := servers[i].QueryRowContext(t.Context(), "SELECT nextval('orders_seq')").Scan(&id); err != nil {
				t.Fatal(err)
			}
			seen.add(t, []int64{id})
		}
	}
	for i, d := range databases {
		servers = append(servers, d.Open(t))
		execute(t, servers[i], fmt.Sprintf("CREATE SEQUENCE orders_seq INCREMENT BY 2 START WITH %d", i+1))
		take(i, 20+300*i) // the second one is the higher one
	}
	if out := w.run(t, 0, "import", nil); strings.Count(out, "in turns") != 2 {
		t.Errorf("the plan does not say that other servers may count in turns: %s", out)
	}
	w.plan(t, 0, nil, "--stopped", "--wait", "10ms", "--apply")
	node := serve(t, w.dir, "--store", w.store)
	seen.add(t, node.ids(t, 500))
	node.end(t, syscall.SIGTERM)

	if !strings.Contains(string(page), "N on the first one, N + 1 on the second") {
		t.Error("docs/MIGRATION.md does not say that sequences which count in turns need different numbers")
	}
	for i, db := range servers {
		back := blocksBelow
		back.more = 2 + int64(i)
		seen.add(t, back.goBack(t, db, w))
	}
	for i := range servers {
		take(i, 20)
	}
}

// TestImportOfARow: one row of a tag in several databases is not the tag. The others would go on among the numbers of the
// other service. What the refusal says is typed, and a node stops meanwhile, and returns unused IDs.
func TestImportOfARow(t *testing.T) {
	t.Parallel()
	d, folder, dir := server.MariaDB(t), t.TempDir(), dataDir(t)
	_, peers := tinyid.start(t, d, 1)
	stores := []string{"--store", "a=sqlite:" + filepath.Join(folder, "a.db"), "--store", "b=sqlite:" + filepath.Join(folder, "b.db"), "--tag-rule", "leaf-segment-test=a,b*1000"}
	alone := append([]string{"--data-dir", dir}, stores...) // without a node
	leafOK(t, append([]string{"schema", "apply"}, alone...)...)
	leafOK(t, append([]string{"tag", "create", "leaf-segment-test", "--step", "5000"}, alone...)...)
	node := serve(t, dir, append(stores, "--no-snowflake-enable")...)
	node.ids(t, 600) // so that it has the next range, too
	seen := peers[0].takes(t, 8000)
	of := func(command string, more ...string) []string {
		return append([]string{command, "tinyid", "--from-file", urlFile(t, d), "--tag", "leaf-segment-test~1of2~1000=order_biz", "--data-dir", dir}, more...)
	}
	if out := leafExits(t, 2, of("compare")...); !strings.Contains(out, "its other rows") {
		t.Errorf("compare: %s", out)
	}
	out := leafExits(t, 5, of("import", "--stopped", "--wait", "10ms", "--apply")...)
	command := regexp.MustCompile(`leaf (tag repair TAG --above N)`).FindStringSubmatch(out)
	if !strings.Contains(out, "its other rows") || command == nil {
		t.Fatalf("import: %s", out)
	}
	node.end(t, syscall.SIGTERM)
	for _, row := range []string{"leaf-segment-test~1of2~1000", "leaf-segment-test~2of2~1000"} {
		words := strings.Fields(strings.NewReplacer("TAG", row, "N", fmt.Sprint(slices.Max(seen)+1)).Replace(command[1]))
		leafOK(t, append(words, alone...)...)
	}
	apart(t, seen, serve(t, dir, append(stores, "--no-snowflake-enable")...))
}
