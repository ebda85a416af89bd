package server_test

import (
	"bufio"
	"context"
	"database/sql"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

var own = map[string]func(testing.TB) *server.Instance{
	"mariadb":  server.OwnMariaDB,
	"postgres": server.OwnPostgres,
}

func TestInstance(t *testing.T) {
	t.Parallel()
	for kind, start := range own {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			i := start(t)
			if got := i.Name(); got != "leaf" {
				t.Errorf("Name() = %q, want leaf", got)
			}
			t.Run("pause and continue", func(t *testing.T) { pauseAndContinue(t, i) })
			t.Run("kill ends running statements", func(t *testing.T) { killRunning(t, i, kind) })
			t.Run("committed rows survive", func(t *testing.T) { rowsSurvive(t, i) })
			i.Pause() // Close at the end of the test must not wait for it
		})
	}
}

func pauseAndContinue(t *testing.T, i *server.Instance) {
	conn, err := i.Open(t).Conn(t.Context()) // an existing session must freeze too
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	i.Pause()
	ended := make(chan error, 1)
	go func() { _, err := conn.ExecContext(context.WithoutCancel(t.Context()), "SELECT 1"); ended <- err }()
	select {
	case err := <-ended:
		t.Errorf("a paused server answered: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	i.Continue()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("after Continue: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("no answer 10 s after Continue")
	}
}

// killRunning: a session of PostgreSQL is a process of its own and would finish
// its statement after the death of its parent.
func killRunning(t *testing.T, i *server.Instance, kind string) {
	query := map[string]string{
		"mariadb":  "SELECT SLEEP(60)",
		"postgres": "SELECT sum(sqrt(x)) FROM generate_series(1, 10000000000) x",
	}[kind]
	running := map[string]string{
		"mariadb":  "SELECT COUNT(*) FROM information_schema.processlist WHERE info = 'SELECT SLEEP(60)'",
		"postgres": "SELECT COUNT(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'SELECT sum(sqrt%'",
	}[kind]
	db := i.Open(t)
	ended := make(chan error, 1)
	go func() {
		_, err := db.ExecContext(context.WithoutCancel(t.Context()), query)
		ended <- err
	}()
	waitUntil(t, "the statement runs", func() bool {
		var n int
		err := db.QueryRowContext(t.Context(), running).Scan(&n)
		return err == nil && n == 1
	})
	i.Kill()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the statement ended well")
		}
	case <-time.After(5 * time.Second):
		t.Error("the statement still runs 5 s after Kill")
	}
	if err := i.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func rowsSurvive(t *testing.T, i *server.Instance) {
	mustExec(t, i.Open(t), "CREATE TABLE t (v int)")
	for n, end := range []struct {
		name string
		f    func()
	}{{"Kill", i.Kill}, {"Stop", i.Stop}, {"Kill again", i.Kill}, {"none", nil}} {
		mustExec(t, i.Open(t), "INSERT INTO t VALUES (1)")
		if end.f != nil {
			end.f()
			if dials(i.Addr()) {
				t.Errorf("after %s: %s still accepts", end.name, i.Addr())
			}
		}
		if err := i.Restart(t.Context()); err != nil {
			t.Fatalf("Restart after %s: %v", end.name, err)
		}
		var got int
		if err := i.Open(t).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM t").Scan(&got); err != nil || got != n+1 {
			t.Errorf("after %s: %d rows, error %v; want %d", end.name, got, err, n+1)
		}
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	t.Parallel()
	for kind, start := range starters {
		t.Run(kind, func(t *testing.T) {
			if kind == "galera" || strings.Contains(kind, " ") { // several servers
				onlyLong(t)
			}
			t.Parallel()
			canStart(t, kind)
			parent := openFolder(t)
			i, err := start(t.Context(), parent)
			if err != nil {
				t.Fatal(err)
			}
			i.kill()
			for range 2 {
				if err := i.close(); err != nil {
					t.Errorf("Close: %v", err)
				}
			}
			if left := entries(t, parent); len(left) != 0 {
				t.Errorf("left behind: %q", left)
			}
			if err := i.restart(t.Context()); err == nil {
				t.Error("Restart after Close succeeded")
			}
		})
	}
}

func TestFailedStartLeavesNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for kind, start := range starters {
		canStart(t, kind)
		parent := openFolder(t)
		if _, err := start(ctx, parent); err == nil {
			t.Errorf("%s: start with a cancelled context succeeded", kind)
		}
		if left := entries(t, parent); len(left) != 0 {
			t.Errorf("%s: left behind: %q", kind, left)
		}
	}
}

// TestServerDiesWithItsParent kills a process that has started a server, frozen
// or not: nobody is left to stop the server but the kernel. The data folder is
// then removed by the next start, once it is a minute old.
func TestServerDiesWithItsParent(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends children with their parent")
	}
	for kind, start := range starters {
		t.Run(kind, func(t *testing.T) {
			if kind != "postgres" && kind != "etcd" {
				onlyLong(t)
			}
			t.Parallel()
			canStart(t, kind)
			folder := openFolder(t)
			cmd := exec.CommandContext(t.Context(), os.Args[0])
			cmd.Env = append(os.Environ(), parentRole+"="+kind, "LEAF_TEST_FOLDER="+folder)
			cmd.Stderr = os.Stderr
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(stdout).ReadString('\n')
			if err != nil {
				t.Fatalf("the parent did not start a server: %v", err)
			}
			addrs := strings.Fields(line)
			for _, addr := range addrs {
				if !dials(addr) {
					t.Fatalf("%s does not accept", addr)
				}
			}
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // its state is "killed"
			for _, addr := range addrs {
				waitUntil(t, addr+" is gone", func() bool { return !dials(addr) })
			}

			left := entries(t, folder)
			if len(left) != 1 {
				t.Fatalf("the killed parent left %q, want one data folder", left)
			}
			old := time.Now().Add(-2 * time.Minute)
			if err := os.Chtimes(filepath.Join(folder, left[0], "owner.lock"), old, old); err != nil {
				t.Fatal(err)
			}
			i, err := start(t.Context(), folder)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := i.close(); err != nil {
					t.Error(err)
				}
			})
			if now := entries(t, folder); len(now) != 1 || now[0] == left[0] {
				t.Errorf("after the next start: %q, want only the new one, not %q", now, left)
			}
		})
	}
}

// openFolder returns a folder that the user postgres may enter; t.TempDir's may
// not be.
func openFolder(t *testing.T) string {
	t.Helper()
	folder, err := os.MkdirTemp("", "leaf-server-test-") //nolint:usetesting // see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(folder); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(folder, 0o755); err != nil { //nolint:gosec // it must be entered by another user
		t.Fatal(err)
	}
	return folder
}

func entries(t *testing.T, folder string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}

func mustExec(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// dials reports whether a server accepts at addr. What lies in no network of
// this machine is not asked: a gateway might answer in its place.
func dials(addr string) bool {
	host, _, _ := net.SplitHostPort(addr)
	networks, _ := net.InterfaceAddrs()
	if !slices.ContainsFunc(networks, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		return ok && n.Contains(net.ParseIP(host))
	}) {
		return false
	}
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	c.Close()
	return true
}

func waitUntil(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(time.Minute); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within a minute: %s", what)
		}
	}
}
