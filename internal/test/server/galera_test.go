package server_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// TestGalera walks through the life of a group: every node accepts writes, a
// minority does not, and nothing that was answered is lost.
func TestGalera(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	g := galera{server.OwnGalera(t, 3)}
	mustExec(t, g.Database(0).Open(t), "CREATE TABLE t (id int AUTO_INCREMENT PRIMARY KEY, v int)")
	for i := range g.Len() {
		g.put(t, i)
	}
	g.same(t, 3, 0, 1, 2)

	g.Kill(2)
	g.put(t, 0) // waits until 2 is missed
	g.restart(t, 2)
	g.same(t, 4, 2)

	if err := g.Isolate(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "an isolated node refuses writes", func() bool { return !g.accepts(t, 1) })
	g.put(t, 0)
	if err := g.Rejoin(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	g.wait(t, 1)
	g.same(t, 5, 1)

	g.Pause(0)
	g.put(t, 2)
	g.Resume(0)
	g.wait(t, 0)
	g.same(t, 6, 0)

	// The last of them has what the others miss; it must begin.
	g.Stop(0)
	g.put(t, 1)
	g.Kill(1, 2)
	if err := g.Restart(t.Context(), 0); err == nil {
		t.Error("a node without a majority was restarted")
	}
	g.restart(t)
	g.same(t, 7, 0, 1, 2)
}

// galera is a group with the questions of the test.
type galera struct{ *server.Galera }

// put tries again as long as the server refuses: on a busy machine a node may be
// missed that is only slow.
func (g galera) put(t *testing.T, node int) {
	t.Helper()
	db := g.Database(node).Open(t)
	waitUntil(t, "a row is written", func() bool {
		_, err := db.ExecContext(t.Context(), "INSERT INTO t (v) VALUES (1)")
		var refused *mysql.MySQLError
		if err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
		return err == nil
	})
}

// accepts tries a write that changes nothing.
func (g galera) accepts(t *testing.T, node int) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := g.Database(node).Open(t).ExecContext(ctx, "DELETE FROM t WHERE v = 0")
	return err == nil
}

func (g galera) same(t *testing.T, want int, nodes ...int) {
	t.Helper()
	g.wait(t, nodes...) // see put
	for _, i := range nodes {
		db, got := g.Database(i).Open(t), 0
		waitUntil(t, "rows are there", func() bool {
			return db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM t").Scan(&got) == nil && got >= want
		})
		if got != want {
			t.Errorf("node %d: %d rows, want %d", i, got, want)
		}
	}
}

func (g galera) wait(t *testing.T, nodes ...int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := g.Wait(ctx, nodes...); err != nil {
		t.Fatal(err)
	}
}

func (g galera) restart(t *testing.T, nodes ...int) {
	t.Helper()
	if err := g.Restart(t.Context(), nodes...); err != nil {
		t.Fatal(err)
	}
}
