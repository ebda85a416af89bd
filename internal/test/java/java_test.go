package java_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leaf-idgen/leaf/internal/test/port"
	"github.com/leaf-idgen/leaf/internal/test/program"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// tag is known to both servers.
const tag = "order"

// TestJavaClients: what Java programs use gets a number from this server, and the same from
// the original, if its build is given, on the same table.
func TestJavaClients(t *testing.T) {
	if os.Getenv("LEAF_TEST_MATRIX") == "" {
		t.Skip("NOT TESTED: the clients come from Maven Central; run make test-matrix")
	}
	db := server.MariaDB(t)
	pool := db.Open(t)
	for _, statement := range []string{
		"CREATE TABLE leaf_alloc (biz_tag varchar(128) NOT NULL DEFAULT '', max_id bigint NOT NULL DEFAULT 1, step int NOT NULL, description varchar(256), " +
			"update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, PRIMARY KEY (biz_tag)) ENGINE=InnoDB",
		"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('" + tag + "', 1, 2000)",
	} {
		if _, err := pool.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("ours", func(t *testing.T) {
		run(t, ours(t, db))
	})
	t.Run("original", func(t *testing.T) {
		jar := os.Getenv("LEAF_ORIGINAL_JAR")
		if jar == "" {
			t.Skip("NOT TESTED: LEAF_ORIGINAL_JAR names no build of the original")
		}
		base := original(t, jar, db)
		run(t, base)
		compare(t, base)
	})
}

// run runs the clients.
func run(t *testing.T, base string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "mvn", "-q", "-B", "compile", "exec:java", "-Dexec.args="+base+" "+tag)
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("mvn: %v", err)
	}
}

// ours starts a node of this program. It is built here, so that a run without the clients links none of it.
func ours(t *testing.T, db server.Database) (base string) {
	t.Helper()
	path, addr := filepath.Join(t.TempDir(), "leaf"), port.Unused(t)
	if err := program.Build(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "serve", "--http-addr="+addr, "--grpc-addr=off", "--resp-addr=off", "--admin-addr=off",
		"--snowflake-enable=false", "--drain-delay=0s", "--data-dir="+t.TempDir())
	cmd.Env = append(os.Environ(), "LEAF_STORE="+db.URL())
	base, end := start(t, "leaf", cmd, addr)
	t.Cleanup(func() {
		if err := end(syscall.SIGTERM); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return base
}

// original starts the original on the same table. Its configuration is a resource, which a
// folder in front of the jar replaces.
func original(t *testing.T, jar string, db server.Database) (base string) {
	t.Helper()
	dsn, err := db.DSN()
	if err != nil {
		t.Fatal(err)
	}
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	text := fmt.Sprintf("leaf.name=matrix\nleaf.segment.enable=true\nleaf.snowflake.enable=false\n"+
		"leaf.jdbc.url=jdbc:mysql://%s/%s?useSSL=false&serverTimezone=UTC\nleaf.jdbc.username=%s\nleaf.jdbc.password=%s\n", c.Addr, c.DBName, c.User, c.Passwd)
	if err := os.WriteFile(filepath.Join(folder, "leaf.properties"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := port.Unused(t)
	_, number, _ := net.SplitHostPort(addr)
	base, _ = start(t, "the original", exec.Command("java", "--add-opens=java.base/java.lang=ALL-UNNAMED", "-cp", folder+":"+jar, "org.springframework.boot.loader.JarLauncher", "--server.port="+number), addr)
	return base
}

// start starts a server and waits for its first ID. end sends it a signal, waits until it has ended, and
// returns how. The test kills what still runs, and prints what the server says if it failed.
func start(t *testing.T, name string, cmd *exec.Cmd, addr string) (base string, end func(os.Signal) error) {
	t.Helper()
	log := new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended, result := make(chan struct{}), error(nil)
	go func() { result = cmd.Wait(); close(ended) }()
	end = func(s os.Signal) error {
		_ = cmd.Process.Signal(s)
		<-ended
		return result
	}
	t.Cleanup(func() {
		_ = end(os.Kill)
		if t.Failed() {
			t.Logf("%s says:\n%s", name, log)
		}
	})
	base = "http://" + addr
	await(t, base, func() bool {
		select {
		case <-ended:
			return false
		default:
			return true
		}
	})
	return base, end
}

// await waits until the server gives an ID, as long as it lives.
func await(t *testing.T, base string, lives func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for every := time.NewTicker(100 * time.Millisecond); lives(); {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/api/segment/get/"+tag, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case <-every.C:
		case <-ctx.Done():
			t.Fatalf("%s gives no ID: %v", base, err)
		}
	}
	t.Fatalf("%s has ended", base)
}

var row = regexp.MustCompile("(?m)^\\| `([A-Z]+) ([^` ]+)`(?: `(Accept): ([^`]+)`)? \\| (\\d{3}) \\| \\d{3}")

// compare holds what docs/MIGRATION.md says of the original equal to it.
func compare(t *testing.T, base string) {
	t.Helper()
	data, err := os.ReadFile("../../../docs/MIGRATION.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := row.FindAllStringSubmatch(string(data), -1)
	if len(rows) < 12 {
		t.Errorf("%d rows were found: rows are missing, or the test does not see them", len(rows))
	}
	for _, m := range rows {
		r, err := http.NewRequestWithContext(t.Context(), m[1], base, nil)
		if err != nil {
			t.Fatal(err)
		}
		path, query, _ := strings.Cut(m[2], "?")
		r.URL.Opaque, r.URL.RawQuery = path, query // as it stands, broken or not
		if m[3] != "" {
			r.Header.Set(m[3], m[4])
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if strconv.Itoa(resp.StatusCode) != m[5] {
			t.Errorf("%s: the document says %s, the original %d", m[0], m[5], resp.StatusCode)
		}
	}
}
