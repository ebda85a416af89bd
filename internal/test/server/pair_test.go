package server_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/proxy"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

var pairs = map[string]func(testing.TB, server.PairOptions) *server.Pair{
	"mariadb":  server.OwnMariaDBPair,
	"postgres": server.OwnPostgresPair,
}

// TestPairFailsOver walks through the life of a pair: what a crash of the
// primary costs when the standby was waited for, and when it was not.
func TestPairFailsOver(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	for kind, start := range pairs {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := start(t, server.PairOptions{})
			createTable(t, p)

			insert(t, p, 0, 5)
			wantRows(t, p.Database(1), 5)
			p.Kill(0)
			mustPromote(t, p, 1)
			if lost := mustLose(t, p); lost != 0 {
				t.Errorf("a clean failover lost %d commits", lost)
			}
			wantRows(t, p.Database(1), 5)
			if err := p.Rebuild(t.Context()); err != nil {
				t.Fatal(err)
			}

			insert(t, p, 1, 2)
			if err := p.Detach(t.Context()); err != nil {
				t.Fatal(err)
			}
			insert(t, p, 1, 3)
			p.Kill(1)
			mustPromote(t, p, 0)
			if lost := mustLose(t, p); lost != 3 {
				t.Errorf("the lossy failover lost %d commits, want 3", lost)
			}
			wantRows(t, p.Database(0), 7)
		})
	}
}

// TestPairSplitsItsBrain ends with two servers that both accept writes.
func TestPairSplitsItsBrain(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	for kind, start := range pairs {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := start(t, server.PairOptions{})
			createTable(t, p)
			insert(t, p, 0, 1)
			if _, err := p.Database(1).Open(t).ExecContext(t.Context(), "INSERT INTO t VALUES (1)"); err == nil {
				t.Error("the standby accepts a write")
			}

			if err := p.Detach(t.Context()); err != nil {
				t.Fatal(err)
			}
			insert(t, p, 0, 2)
			if err := p.Attach(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantRows(t, p.Database(1), 3)

			if err := p.Detach(t.Context()); err != nil {
				t.Fatal(err)
			}
			mustPromote(t, p, 1)
			insert(t, p, 0, 4)
			insert(t, p, 1, 2)
			wantRows(t, p.Database(0), 7)
			wantRows(t, p.Database(1), 5)
			if lost := mustLose(t, p); lost != 4 {
				t.Errorf("%d commits are on the former primary only, want 4", lost)
			}
			if err := p.Attach(t.Context()); err == nil {
				t.Error("a former primary was attached")
			}
		})
	}
}

// TestPairWaitsForItsStandby: without one there is no commit, until it is back.
func TestPairWaitsForItsStandby(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	for kind, start := range pairs {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			p := start(t, server.PairOptions{})
			createTable(t, p)
			db := p.Database(0).Open(t)
			for _, fault := range []struct {
				name  string
				begin func(...int)
				end   func()
			}{
				{"paused", p.Pause, func() { p.Resume(1) }},
				{"killed", p.Kill, func() {
					if err := p.Restart(t.Context(), 1); err != nil {
						t.Fatal(err)
					}
				}},
			} {
				fault.begin(1)
				committed := startInsert(t, db)
				select {
				case err := <-committed:
					t.Errorf("standby %s: a commit was answered: %v", fault.name, err)
				case <-time.After(300 * time.Millisecond):
				}
				fault.end()
				if err := <-committed; err != nil {
					t.Errorf("standby %s and back: %v", fault.name, err)
				}
				mustWait(t, p)
			}
			p.Kill()
			if err := p.Restart(t.Context()); err != nil {
				t.Fatal(err)
			}
			mustWait(t, p)
			insert(t, p, 0, 1)
			wantRows(t, p.Database(0), 3)
			wantRows(t, p.Database(1), 3)
		})
	}
}

// TestPairLink holds the replication up on its way, and then cuts it: a commit
// waits as long, and no longer.
func TestPairLink(t *testing.T) {
	onlyLong(t)
	t.Parallel()
	for kind, start := range pairs {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			var link *proxy.Proxy
			p := start(t, server.PairOptions{Link: func(target string) (string, error) {
				var err error
				if link, err = proxy.Start(target); err != nil {
					return "", err
				}
				t.Cleanup(link.Close)
				return link.Addr(), nil
			}})
			createTable(t, p)
			db := p.Database(0).Open(t)
			link.Hold(proxy.Server)
			committed := startInsert(t, db)
			select {
			case err := <-committed:
				t.Errorf("a commit was answered that the standby does not have: %v", err)
			case <-time.After(300 * time.Millisecond):
			}
			link.Cut()
			link.Hold()
			if err := <-committed; err != nil {
				t.Error(err)
			}
			wantRows(t, p.Database(1), 1)
		})
	}
}

// createTable returns when the standby has executed it, too. MariaDB writes such a
// statement to its binary log before it notes that it has executed it: a standby that
// is killed between the two executes it twice, and stops.
func createTable(t *testing.T, p *server.Pair) {
	t.Helper()
	db, standby := p.Database(0).Open(t), p.Database(1).Open(t)
	mustExec(t, db, "CREATE TABLE t (v int)")
	mustExec(t, db, "CREATE TABLE noted (v int)")
	mustExec(t, db, "INSERT INTO noted VALUES (1)")
	waitUntil(t, "the standby has executed what comes after the table", func() bool {
		var n int
		return standby.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM noted").Scan(&n) == nil && n == 1
	})
}

func startInsert(t *testing.T, db *sql.DB) (committed <-chan error) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		defer close(done)
		_, err := db.ExecContext(context.WithoutCancel(t.Context()), "INSERT INTO t VALUES (1)")
		done <- err
	}()
	return done
}

func mustWait(t *testing.T, p *server.Pair) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := p.Wait(ctx); err != nil {
		t.Fatal(err)
	}
}

func mustPromote(t *testing.T, p *server.Pair, want int) {
	t.Helper()
	if err := p.Promote(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := p.Primary(); got != want {
		t.Fatalf("Primary() = %d, want %d", got, want)
	}
}

func mustLose(t *testing.T, p *server.Pair) int {
	t.Helper()
	lost, err := p.Lost(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return lost
}

func insert(t *testing.T, p *server.Pair, node, rows int) {
	t.Helper()
	db := p.Database(node).Open(t)
	for range rows {
		mustExec(t, db, "INSERT INTO t VALUES (1)")
	}
}

// wantRows waits for the rows: a standby has received what it shows a moment
// later.
func wantRows(t *testing.T, d server.Database, want int) {
	t.Helper()
	db := d.Open(t)
	var got int
	waitUntil(t, "rows are there", func() bool { got = rows(t, db); return got >= want })
	if got != want {
		t.Errorf("%d rows, want %d", got, want)
	}
}

func rows(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM t").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
