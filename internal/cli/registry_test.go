package cli_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/leaf-idgen/leaf/internal/cli"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// awaitReady waits until all modes of the node issue.
func (p *process) awaitReady(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		status, body, err := httpGet(p.addr, "/readyz")
		if status == 200 && settled(body) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("/readyz: got %d %s, %v; log:\n%s", status, body, err, p.log)
		}
	}
}

// settled reports whether what a node says of its readiness names no mode that is still to
// come. One whose tables are missing does not come by itself.
func settled(reasons string) bool {
	return !strings.Contains(reasons, "snowflake mode is ") || strings.Contains(reasons, "leaf schema apply") || strings.Contains(reasons, "snowflake mode is off")
}

// snowflakes takes more IDs than a millisecond has.
func (p *process) snowflakes(t *testing.T) (ids []int64) {
	t.Helper()
	status, body, err := httpGet(p.addr, "/api/snowflake/get/x?count=5000")
	if err != nil || status != 200 {
		t.Fatalf("got %d %s, %v; log:\n%s", status, body, err, p.log)
	}
	return idsIn(t, body)
}

// TestRegistries runs two nodes on each registry through start, kill, restart and stop,
// and looks at it with the commands.
func TestRegistries(t *testing.T) {
	t.Parallel()
	zooKeeper := func(kind string) func(t *testing.T) []string {
		return func(t *testing.T) []string {
			ns := server.ZooKeeper(t)
			return []string{"--snowflake-registry", kind, "--snowflake-registry-address", strings.Join(ns.Servers, ",") + ns.Root, "--snowflake-name", "com.example.leaf"}
		}
	}
	database := func(open func(testing.TB) server.Database) func(t *testing.T) []string {
		return func(t *testing.T) []string {
			url := open(t).URL()
			leafOK(t, "schema", "apply", "--store", url, "--data-dir", dataDir(t))
			return []string{"--snowflake-registry", "sql", "--snowflake-registry-address", url}
		}
	}
	for name, open := range map[string]func(t *testing.T) []string{
		"zookeeper":         zooKeeper("zookeeper"),
		"zookeeper-recycle": zooKeeper("zookeeper-recycle"),
		"etcd": func(t *testing.T) []string {
			ns := server.Etcd(t)
			return []string{"--snowflake-registry", "etcd", "--snowflake-registry-address", ns.Servers[0], "--snowflake-name", strings.Trim(ns.Root, "/")}
		},
		"MariaDB":    database(server.MariaDB),
		"PostgreSQL": database(server.Postgres),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry := open(t)
			command := func(args ...string) string {
				return leafOK(t, append(append([]string{"worker"}, args...), append(registry, "--data-dir", dataDir(t))...)...)
			}
			command("init")
			node := func(dir string, port int) *process {
				p := serve(t, dir, append([]string{
					"--no-segment-enable", "--snowflake-force-address", "--snowflake-address", fmt.Sprintf("127.0.0.1:%d", port),
				}, registry...)...)
				p.awaitReady(t)
				return p
			}
			// A node issues first and is announced to its peers then.
			awaitRunning := func(want int) (out string) {
				for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
					out = command("list")
					if strings.Count(out, " running ") == want {
						return out
					}
					if time.Now().After(deadline) {
						t.Fatalf("want %d running nodes, got\n%s", want, out)
					}
				}
			}
			dir := dataDir(t)
			a := node(dir, 20001)
			awaitRunning(1)
			b := node(dataDir(t), 20002)
			seen := distinct{}
			for range 3 {
				seen.add(t, a.snowflakes(t))
				seen.add(t, b.snowflakes(t))
			}
			if out := awaitRunning(2); !strings.Contains(out, "127.0.0.1:20001") || !strings.Contains(out, "127.0.0.1:20002") {
				t.Errorf("got\n%s", out)
			}
			if _, body, _ := httpGet(b.addr, "/metrics"); !strings.Contains(body, "\nleaf_snowflake_peers_answered 1\n") {
				t.Errorf("the second node did not ask the first one for its time:\n%s", body)
			}
			a.end(t, syscall.SIGKILL)
			a = node(dir, 20001) // goes on with its own number, from the bound in its file
			seen.add(t, a.snowflakes(t))
			seen.add(t, b.snowflakes(t))
			a.end(t, syscall.SIGTERM)
			b.end(t, syscall.SIGTERM)
			if out := command("list"); strings.Count(out, " released ") != 2 {
				t.Errorf("got\n%s", out)
			}
			var out, errs bytes.Buffer
			args := append([]string{"worker", "init", "--snowflake-layout", "js53", "--data-dir", dataDir(t)}, registry...)
			if code := cli.Run(t.Context(), cli.Process{Args: args, Stdout: &out, Stderr: &errs, Environ: []string{patient}}); code != 5 {
				t.Errorf("another layout: exit code %d: %s", code, errs.String())
			}
		})
	}
}

// TestStandbyPair: two nodes share one worker ID. The second waits for it without a
// complaint, and serves when the first one stops.
func TestStandbyPair(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + filepath.Join(dataDir(t), "workers.db")
	leafOK(t, "schema", "apply", "--store", url, "--data-dir", dataDir(t))
	leafOK(t, "worker", "init", "--snowflake-registry", "sql", "--snowflake-registry-address", url, "--data-dir", dataDir(t))
	registry := []string{
		"--no-segment-enable", "--snowflake-registry", "sql", "--snowflake-registry-address", url,
		"--snowflake-worker-range", "5-5", "--snowflake-renew-interval", "200ms", "--store-private",
	}
	active := serve(t, dataDir(t), registry...)
	active.awaitReady(t)
	seen := distinct{}
	seen.add(t, active.snowflakes(t))
	standby := serve(t, dataDir(t), append(registry, "--snowflake-standby")...)
	awaitBody(t, standby, "/readyz", `{"ready":false,"modes":{"snowflake":{"ready":false,"reasons":["snowflake mode is standby: claim a worker ID: worker: no free worker ID: all 1 worker IDs 5 to 5 are taken`)
	if _, body, _ := httpGet(standby.addr, "/readyz"); strings.Contains(body, "alarm") {
		t.Errorf("it complains: %s", body)
	}
	third := serve(t, dataDir(t), registry...)
	awaitBody(t, third, "/readyz", "alarm claim (worker): ")
	third.end(t, syscall.SIGTERM)

	active.end(t, syscall.SIGTERM)
	standby.awaitReady(t)
	seen.add(t, standby.snowflakes(t))
	if _, body, _ := httpGet(standby.addr, "/metrics"); !strings.Contains(body, "\nleaf_snowflake_worker_id 5\n") {
		t.Errorf("/metrics:\n%s", body)
	}
	standby.end(t, syscall.SIGTERM)
}

// awaitBody waits until a page of the node has the text.
func awaitBody(t *testing.T, p *process, path, text string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		_, body, err := httpGet(p.addr, path)
		if strings.Contains(body, text) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: got %s, %v, want %s; log:\n%s", path, body, err, text, p.log)
		}
	}
}

// TestDatabaseOfTheJavaServer has nothing but the original's table: segment mode serves
// from it as before, and snowflake mode as soon as its tables are there.
func TestDatabaseOfTheJavaServer(t *testing.T) {
	t.Parallel()
	db := server.MariaDB(t)
	conn, err := sql.Open("mysql", dsn(t, db.URL()))
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{
		"CREATE TABLE leaf_alloc (biz_tag varchar(128) NOT NULL DEFAULT '', max_id bigint(20) NOT NULL DEFAULT '1', step int(11) NOT NULL, description varchar(256) DEFAULT NULL, update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, PRIMARY KEY (biz_tag)) ENGINE=InnoDB",
		"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('leaf-segment-test', 1, 2000)",
	} {
		if _, err := conn.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	p := serve(t, dataDir(t), "--store", db.URL(), "--snowflake-address", "127.0.0.1", "--snowflake-force-address")
	p.awaitReady(t)
	if ids := p.ids(t, 2); ids[0] != 1 || ids[1] != 2 {
		t.Errorf("got %v", ids)
	}
	if status, body, err := httpGet(p.addr, "/api/snowflake/get/x"); status != 503 || !strings.Contains(body, "its log says why") {
		t.Errorf("got %d %s, %v", status, body, err)
	}
	if _, body, _ := httpGet(p.addr, "/readyz"); !strings.Contains(body, "run: leaf schema apply --store") || !strings.HasPrefix(body, `{"ready":true,"modes":{"segment":{"ready":true},"snowflake":{"ready":false,"reasons":["snowflake mode is refused: `) {
		t.Errorf("/readyz: %s", body)
	}
	var out, errs bytes.Buffer
	args := []string{"serve", "--store", db.URL(), "--data-dir", dataDir(t), "--http-addr", "127.0.0.1:0", "--snowflake-registry", "sql", "--snowflake-address", "127.0.0.1", "--snowflake-force-address"}
	code := cli.Run(t.Context(), cli.Process{Args: args, Stdout: &out, Stderr: &errs})
	if _, last, _ := strings.Cut(errs.String(), "msg=stopped\n"); code != 4 || !strings.Contains(last, "run: leaf schema apply --store") || strings.Count(last, "\n") != 1 {
		t.Errorf("a registry that was asked for: exit code %d: %s", code, errs.String())
	}

	leafOK(t, "schema", "apply", "--store", db.URL(), "--data-dir", dataDir(t))
	leafOK(t, "worker", "init", "--store", db.URL(), "--data-dir", dataDir(t))
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		status, body, err := httpGet(p.addr, "/api/snowflake/get/x")
		// Between the two commands the node may have claimed: then it waits as in any
		// registry that nobody declared new.
		if status == 200 || status == 503 && strings.Contains(body, "snowflake mode is waiting: worker ID ") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %d %s, %v; log:\n%s", status, body, err, p.log)
		}
	}
	p.end(t, syscall.SIGTERM)
}

// dsn is a store URL as the MySQL driver wants it.
func dsn(t *testing.T, store string) string {
	t.Helper()
	u, err := url.Parse(store)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s@tcp(%s)%s", u.User, u.Host, u.Path)
}

// restore sets the row of the demo tag back, as an old dump does.
func restore(t *testing.T, store string, maxID int64) {
	t.Helper()
	conn, err := sql.Open("mysql", dsn(t, store))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), "UPDATE leaf_alloc SET max_id = ? WHERE biz_tag = 'leaf-segment-test'", maxID); err != nil {
		t.Fatal(err)
	}
}

// awaitFenceOnTheBoard waits until that many nodes have noted in the store that their ranges are in a
// cluster fence.
func awaitFenceOnTheBoard(t *testing.T, store string, want int) {
	t.Helper()
	conn, err := sql.Open("mysql", dsn(t, store))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		var nodes int
		if err := conn.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM leaf_repair_node WHERE biz_tag = '' AND high > 0").Scan(&nodes); err != nil {
			t.Fatal(err)
		}
		if nodes >= want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d nodes note their cluster fence, want %d", nodes, want)
		}
	}
}

// TestRepairFromTheClusterFence: the table is restored from an old dump, and a node
// that never served the tag refuses it; the fence knows where to go on.
func TestRepairFromTheClusterFence(t *testing.T) {
	t.Parallel()
	for name, fence := range map[string]func(t *testing.T) string{
		"zookeeper": func(t *testing.T) string {
			ns := server.ZooKeeper(t)
			return "zookeeper://" + strings.Join(ns.Servers, ",") + ns.Root + "/leaf"
		},
		"etcd": func(t *testing.T) string {
			ns := server.Etcd(t)
			return "etcd://" + strings.Join(ns.Servers, ",") + "/" + strings.Trim(ns.Root, "/")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shared := []string{"--store", server.MariaDB(t).URL(), "--segment-cluster-fence", fence(t)}
			tag := func(args ...string) string {
				return leafOK(t, append(append([]string{}, args...), append(shared, "--data-dir", dataDir(t))...)...)
			}
			leafOK(t, "schema", "apply", "--store", shared[1], "--data-dir", dataDir(t))
			tag("tag", "create", "leaf-segment-test", "--step", "1000")
			a := serve(t, dataDir(t), append([]string{"--no-snowflake-enable"}, shared...)...)
			seen := distinct{}
			seen.add(t, a.ids(t, 1500))
			awaitFenceOnTheBoard(t, shared[1], 1) // a node that is gone is not waited for only after that
			a.end(t, syscall.SIGKILL)

			// Yesterday's dump.
			restore(t, shared[1], 1)
			dir := dataDir(t)
			b := serve(t, dir, append([]string{"--no-snowflake-enable"}, shared...)...)
			b.takeUntil(t, seen, "code=regress")
			if status, body, err := httpGet(b.addr, "/api/segment/get/leaf-segment-test"); status != 503 || !strings.Contains(body, `"code":"regress"`) {
				t.Errorf("got %d %s, %v, want a regress", status, body, err)
			}
			awaitBody(t, b, "/readyz", "alarm regress (leaf-segment-test): ")
			leafOK(t, "tag", "repair", "leaf-segment-test", "--data-dir", dir)
			seen.add(t, b.ids(t, 1500))
			b.end(t, syscall.SIGTERM)

			// A command that issues by itself goes by the fence as well.
			for line := range strings.Lines(tag("next", "leaf-segment-test", "-n", "100")) {
				id, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
				if err != nil {
					t.Fatal(err)
				}
				seen.add(t, []int64{id})
			}
		})
	}
}
