package cli_test

import (
	"bytes"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/cli"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// patient lets a command wait for a database on a machine that runs many tests at once.
const patient = "LEAF_STORE_CONNECT_TIMEOUT=2s"

// leafOK runs a command in this process and returns its output.
func leafOK(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := cli.Run(t.Context(), cli.Process{Args: args, Stdout: &out, Stderr: &errs, Environ: []string{"HOME=" + t.TempDir(), patient}}); code != 0 {
		t.Fatalf("leaf %s: exit code %d: %s", strings.Join(args, " "), code, errs.String())
	}
	return out.String()
}

func TestRealServers(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(*testing.T) string{
		"MariaDB":    func(t *testing.T) string { return server.MariaDB(t).URL() },
		"PostgreSQL": func(t *testing.T) string { return server.Postgres(t).URL() },
		"etcd":       etcdURL,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := url(t)
			leafOK(t, "schema", "apply", "--store", store, "--data-dir", dataDir(t))
			leafOK(t, "tag", "create", "leaf-segment-test", "--step", "1000", "--min-step", "10", "--store", store, "--data-dir", dataDir(t))

			dir := dataDir(t)
			a, b := serve(t, dir, "--store", store), serve(t, dataDir(t), "--store", store)
			seen := distinct{}
			for range 5 {
				seen.add(t, a.ids(t, 700))
				seen.add(t, b.ids(t, 700))
			}
			a.end(t, syscall.SIGKILL)
			seen.add(t, b.ids(t, 700))
			a = serve(t, dir, "--store", store)
			seen.add(t, a.ids(t, 700))
			a.end(t, syscall.SIGTERM)
			b.end(t, syscall.SIGTERM)
			if out := leafOK(t, "tag", "show", "leaf-segment-test", "--store", store, "--data-dir", dir); !strings.Contains(out, "1000 (from 10)") {
				t.Errorf("got %s", out)
			}
		})
	}
}

// TestJavaConfiguration starts from the file of the Java server.
func TestJavaConfiguration(t *testing.T) {
	t.Parallel()
	db := server.MariaDB(t)
	leafOK(t, "schema", "apply", "--store", db.URL(), "--data-dir", dataDir(t))
	leafOK(t, "tag", "create", "leaf-segment-test", "--start", "500", "--store", db.URL(), "--data-dir", dataDir(t))
	u, err := url.Parse(db.URL())
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	file := filepath.Join(t.TempDir(), "leaf.properties")
	text := "leaf.name=shop\nleaf.segment.enable=true\nleaf.jdbc.url=jdbc:mysql://" + u.Host + u.Path +
		"?useUnicode=true&characterEncoding=utf8&autoReconnect=true\nleaf.jdbc.username=" + u.User.Username() + "\nleaf.jdbc.password=" + password +
		"\nleaf.snowflake.enable=false\n#leaf.snowflake.zk.address=\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := serve(t, dataDir(t), "--config", file)
	if ids := p.ids(t, 2); ids[0] != 500 || ids[1] != 501 {
		t.Errorf("got %v, want 500 and 501", ids)
	}
	p.end(t, syscall.SIGTERM)
	if password != "" && strings.Contains(p.log.String(), password) {
		t.Errorf("the log shows the password:\n%s", p.log)
	}
}

func TestStartWithTheDatabaseDown(t *testing.T) {
	t.Parallel()
	db := server.OwnMariaDB(t)
	leafOK(t, "schema", "apply", "--store", db.URL(), "--data-dir", dataDir(t))
	leafOK(t, "worker", "init", "--store", db.URL(), "--data-dir", dataDir(t))
	leafOK(t, "tag", "create", "leaf-segment-test", "--store", db.URL(), "--data-dir", dataDir(t))
	db.Kill()
	p := serve(t, dataDir(t), "--store", db.URL(), "--segment-max-wait", "50ms")
	for path, want := range map[string]int{"/api/segment/get/leaf-segment-test": 503, "/api/segment/get/nope": 503, "/api/snowflake/get/x": 503, "/readyz": 503, "/healthz": 200} {
		if status, body, err := httpGet(p.addr, path); err != nil || status != want {
			t.Errorf("%s: got %d %s, %v, want %d", path, status, body, err, want)
		}
	}
	if err := db.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		status, body, err := httpGet(p.addr, "/api/segment/get/leaf-segment-test")
		if status == 200 {
			if body != "1" {
				t.Errorf("first ID: got %s, want 1", body)
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("got %d %s, %v; log:\n%s", status, body, err, p.log)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		status, body, err := httpGet(p.addr, "/readyz")
		if status == 200 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("/readyz: got %d %s, %v; log:\n%s", status, body, err, p.log)
		}
	}
	p.end(t, syscall.SIGTERM)
}
