package proof_test

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// TestDatabaseGoesBackwards: under load, the row's max_id is lowered, the row is
// deleted and created again, or the table is restored from an older dump. The node
// refuses and latches; a restart and a second try change nothing; after the repair
// it serves; no ID was ever repeated.
func TestDatabaseGoesBackwards(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) server.Database{"MariaDB": server.MariaDB, "PostgreSQL": server.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for fault, back := range map[string]func(*testing.T, *sql.DB){
				"max_id lowered": func(t *testing.T, db *sql.DB) {
					execute(t, db, "UPDATE leaf_alloc SET max_id = max_id - 777 WHERE biz_tag = 'order'")
				},
				"row deleted and created again": func(t *testing.T, db *sql.DB) {
					execute(t, db, "DELETE FROM leaf_alloc WHERE biz_tag = 'order'")
					execute(t, db, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('order', 1, 100)")
				},
				"table restored from an older dump": func(t *testing.T, db *sql.DB) {
					execute(t, db, "DROP TABLE leaf_alloc")
					execute(t, db, "CREATE TABLE leaf_alloc AS SELECT * FROM dump")
				},
			} {
				t.Run(fault, func(t *testing.T) {
					t.Parallel()
					goBackwards(t, open(t), back)
				})
			}
		})
	}
}

func goBackwards(t *testing.T, database server.Database, back func(*testing.T, *sql.DB)) {
	store, db := database.URL(), database.Open(t)
	mustLeaf(t, "schema", "apply", "--store", store)
	mustLeaf(t, "tag", "create", "order", "--step", "100", "--fixed-step", "--store", store)
	n := newNode(t, "n", store)
	n.start(t)
	w := newWatch(n)
	w.untilServed(t, "order", 10*time.Second)
	execute(t, db, "CREATE TABLE dump AS SELECT * FROM leaf_alloc")

	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for range 4 {
		clients.Go(func() { w.ask(ctx, "order", time.Millisecond) })
	}
	waitFor(t, time.Minute, "load", func() bool { return w.outcome("order").ok > 1500 })
	back(t, db)
	waitFor(t, time.Minute, "refusal", func() bool { return w.outcome("order").failed > 10 })
	stop()
	clients.Wait()

	refused := func(when string) {
		t.Helper()
		for range 5 {
			status, got, err := get(t.Context(), w.c, n, "order", 1)
			if err != nil || status != 503 {
				t.Fatalf("%s: status %d, %v, %v; want 503", when, status, got, err)
			}
		}
	}
	refused("latched")
	// A node of which every tag is latched is not ready; leaf tag show says why.
	waitLatched := func() {
		t.Helper()
		waitFor(t, 20*time.Second, "latched tag", func() bool {
			out, err := leaf(t, "tag", "show", "order", "--data-dir", n.dir, "--json")
			return err == nil && strings.Contains(out, `"state": "latched"`)
		})
	}
	n.stop()
	n.start(t)
	waitLatched()
	refused("after a restart")
	n.kill()
	n.start(t)
	waitLatched()
	refused("after a crash")

	// Too low a number is refused, and the text says which one is right.
	out, err := leaf(t, "tag", "repair", "order", "--above", "2", "--data-dir", n.dir)
	if err == nil || !strings.Contains(out, "or more") {
		t.Fatalf("repair with too low a number: %v, %q", err, out)
	}
	highest := int64(0)
	for _, id := range w.ids.ids["order"] {
		highest = max(highest, id)
	}
	mustLeaf(t, "tag", "repair", "order", "--above", strconv.FormatInt(highest+1000, 10), "--data-dir", n.dir)
	for range 500 {
		w.untilServed(t, "order", 5*time.Second)
	}
	w.ids.check(t)
	if !strings.Contains(n.tail(), "level=ERROR") {
		t.Error("the regress was not logged at ERROR")
	}
	t.Logf("%d IDs, all distinct", w.ids.len())
}

func execute(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}
