package server_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// TestMySQLGroup walks through the life of a group: every member accepts writes, a member
// that is outside of it does not, and nothing that was answered is lost.
func TestMySQLGroup(t *testing.T) {
	if os.Getenv("LEAF_TEST_MATRIX") == "" && !long.Asked() {
		t.Skip("NOT TESTED: takes half a minute; run make test-matrix")
	}
	t.Parallel()
	g := mysqlGroup{server.OwnMySQLGroup(t, 3)}
	mustExec(t, g.Database(0).Open(t), "CREATE TABLE t (id int AUTO_INCREMENT PRIMARY KEY, v int)")
	g.same(t, 0, 0, 1, 2)
	for i := range g.Len() {
		g.put(t, i)
	}
	g.same(t, 3, 0, 1, 2)

	g.Kill(2)
	g.put(t, 0) // waits until 2 is expelled
	if err := g.Restart(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	g.same(t, 4, 2)

	g.Pause(1)
	g.put(t, 0)
	g.Resume(1)
	g.same(t, 5, 1)

	// A member that starts outside of its group: docs/MIGRATION.md names the setting that
	// keeps it from taking writes.
	if err := g.RestartOutside(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	var refused *mysql.MySQLError
	if err := g.insert(t, 2); !errors.As(err, &refused) || refused.Number != 1290 {
		t.Errorf("a write to a member outside of its group: %v; want error 1290 of super_read_only", err)
	}
	if err := g.RestartOutside(t.Context(), 2, "--super-read-only=OFF"); err != nil {
		t.Fatal(err)
	}
	if err := g.insert(t, 2); err != nil {
		t.Errorf("a write to a member outside of its group, without super_read_only: %v; docs/MIGRATION.md says that it is accepted", err)
	}
}

// mysqlGroup is a group with the questions of the test.
type mysqlGroup struct{ *server.MySQLGroup }

func (g mysqlGroup) insert(t *testing.T, member int) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	_, err := g.Database(member).Open(t).ExecContext(ctx, "INSERT INTO t (v) VALUES (1)")
	return err
}

// put tries again as long as the server refuses: on a busy machine a member may be
// expelled that is only slow.
func (g mysqlGroup) put(t *testing.T, member int) {
	t.Helper()
	waitUntil(t, "a row is written", func() bool {
		err := g.insert(t, member)
		var refused *mysql.MySQLError
		if err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
		return err == nil
	})
}

func (g mysqlGroup) same(t *testing.T, want int, members ...int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := g.Wait(ctx, members...); err != nil {
		t.Fatal(err)
	}
	for _, i := range members {
		db, got := g.Database(i).Open(t), 0
		waitUntil(t, "rows are there", func() bool {
			return db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM t").Scan(&got) == nil && got >= want
		})
		if got != want {
			t.Errorf("member %d: %d rows, want %d", i, got, want)
		}
	}
}
