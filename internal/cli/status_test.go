package cli_test

import (
	"context"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/cli"
)

// TestWatchOutlivesItsNode: leaf status --watch shows a node that ends and comes back, and ends
// itself at Ctrl-C without an error.
func TestWatchOutlivesItsNode(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	p := serve(t, dir)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var out syncBuffer
	code := make(chan int, 1)
	go func() {
		code <- cli.Run(ctx, cli.Process{Args: []string{"status", "--watch", "--every", "100ms", "--data-dir", dir}, Stdout: &out, Stderr: &out, Environ: []string{"HOME=" + dir}})
	}()
	shows := func(text string, after int) int {
		t.Helper()
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
			if all := out.String(); strings.Contains(all[after:], text) {
				return len(all)
			}
		}
		t.Fatalf("%q is not shown: %s", text, out.String()[after:])
		return 0
	}
	seen := shows("segment    ready\n", 0)
	p.end(t, syscall.SIGTERM)
	seen = shows("no node is running", seen)
	serve(t, dir)
	shows("segment    ready\n", seen)
	interrupt()
	if got := <-code; got != 0 {
		t.Errorf("exit code %d: %s", got, out.String())
	}
}

// TestHealthCheck: a node that answers and serves no mode fails a health check, without a word,
// but not one that restarts nodes.
func TestHealthCheck(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	p := serve(t, dir, "--store", "mysql://leaf@127.0.0.1:1/leaf", "--snowflake-enable=false")
	if code, errs := runLeaf(t, "status", "--quiet", "--data-dir", dir); code != 1 || errs != "" {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if code, errs := runLeaf(t, "status", "--quiet", "--alive", "--data-dir", dir); code != 0 || errs != "" {
		t.Errorf("alive: exit code %d, %s", code, errs)
	}
	gone := filepath.Join(t.TempDir(), "gone.yaml") // since the node has started, which goes on with what it has
	if code, errs := runLeaf(t, "status", "--quiet", "--alive", "--data-dir", dir, "--config", gone); code != 0 || errs != "" {
		t.Errorf("alive, beside a configuration that cannot be read: exit code %d, %s", code, errs)
	}
	p.end(t, syscall.SIGTERM)
}
