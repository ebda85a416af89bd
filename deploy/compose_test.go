package deploy_test

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/leaf-idgen/leaf/internal/cli"
	"github.com/leaf-idgen/leaf/internal/test/port"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

type service struct {
	Image       string
	Command     []string
	Environment map[string]string
	Volumes     []string
	DependsOn   map[string]struct{ Condition string } `yaml:"depends_on"`
}

func services(t *testing.T) map[string]service {
	t.Helper()
	text, err := os.ReadFile("compose/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Services map[string]service }
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	return file.Services
}

// TestComposeCommands runs the commands of all services of the image leaf on a real MariaDB, in the
// order of the file, twice: a second docker compose up must find all as it was.
func TestComposeCommands(t *testing.T) {
	t.Parallel()
	all, database := services(t), server.MariaDB(t).URL()
	run := func(ctx context.Context, name, dir string, args ...string) (int, string) {
		s, environ := all[name], []string{"LEAF_DATA_DIR=" + dir}
		for key, value := range s.Environment {
			if key == "LEAF_STORE" {
				if !strings.HasSuffix(value, "@db:3306/leaf") {
					t.Errorf("%s uses %s", name, value)
				}
				value = database
			}
			environ = append(environ, key+"="+value)
		}
		var errs bytes.Buffer
		code := cli.Run(ctx, cli.Process{Args: append(slices.Clone(s.Command), args...), Environ: environ, Stdout: &errs, Stderr: &errs})
		return code, errs.String()
	}
	for range 2 {
		for _, name := range []string{"schema", "prepare"} {
			if code, out := run(t.Context(), name, t.TempDir()); code != 0 {
				t.Fatalf("%s: exit code %d, %s", name, code, out)
			}
		}
	}
	if all["prepare"].DependsOn["schema"].Condition != "service_completed_successfully" {
		t.Error("prepare does not wait for schema")
	}
	for _, name := range []string{"node-1", "node-2", "node-3"} {
		n := all[name]
		if n.DependsOn["prepare"].Condition != "service_completed_successfully" || !slices.Equal(n.Volumes, []string{name + ":/data"}) || n.Command != nil {
			t.Errorf("%s: %+v", name, n)
		}
		n.Command = []string{"serve"} // the image's
		all[name] = n
		serveOnce(t, func(ctx context.Context, dir, addr string) (int, string) {
			return run(ctx, name, dir, "--http-addr="+addr, "--grpc-addr=off", "--resp-addr=off", "--admin-addr=off", "--drain-delay=0s")
		})
	}
}

// serveOnce runs a node until it is ready, and ends it.
func serveOnce(t *testing.T, run func(ctx context.Context, dir, addr string) (int, string)) {
	t.Helper()
	dir, err := os.MkdirTemp("", "leaf") //nolint:usetesting // the name of a test makes the path too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	addr := port.Unused(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	type result struct {
		code int
		log  string
	}
	ended := make(chan result, 1)
	go func() {
		code, log := run(ctx, dir, addr)
		ended <- result{code, log}
	}()
	ready := false
	for end := time.Now().Add(20 * time.Second); !ready && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/readyz?mode=snowflake", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			ready = resp.StatusCode == http.StatusOK
			resp.Body.Close()
		}
	}
	cancel()
	if r := <-ended; !ready || r.code != 0 {
		t.Errorf("ready %v, exit code %d, log:\n%s", ready, r.code, r.log)
	}
}

// TestComposeMounts: the files that the services get from this repository are in it.
func TestComposeMounts(t *testing.T) {
	t.Parallel()
	mounts := 0
	for name, s := range services(t) {
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if !strings.HasPrefix(from, ".") {
				continue
			}
			mounts++
			if _, err := os.Stat(filepath.Join("compose", filepath.FromSlash(from))); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if mounts < 4 {
		t.Errorf("only %d mounts were found", mounts)
	}
}
