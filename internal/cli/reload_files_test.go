package cli_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/leaf-idgen/leaf/internal/server/servertest"
)

// TestFilesReload changes the files of a running node, and sends no signal: a token as Kubernetes
// swaps a secret, and the configuration file, which is wrong for a while.
func TestFilesReload(t *testing.T) {
	t.Parallel()
	dir, files := dataDir(t), t.TempDir()
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	version := 0
	// swap puts a text into the file token of a mounted secret.
	swap := func(text string) {
		t.Helper()
		version++
		folder := "..v" + strconv.Itoa(version)
		if err := os.Mkdir(filepath.Join(files, folder), 0o700); err != nil {
			t.Fatal(err)
		}
		write(filepath.Join(files, folder, "token"), text)
		if err := os.Symlink(folder, filepath.Join(files, "..tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(files, "..tmp"), filepath.Join(files, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	swap("first\n")
	token := filepath.Join(files, "token")
	if err := os.Symlink(filepath.Join("..data", "token"), token); err != nil {
		t.Fatal(err)
	}
	yaml := filepath.Join(files, "leaf.yaml")
	const head = "reload-interval: 10ms\nauth:\n  token-file: "
	write(yaml, head+token+"\n")
	p := serve(t, dir, "--config", yaml)
	status := func(token string) int { return servertest.StatusWith(t, p.addr, "leaf-segment-test", token) }
	swap("second\n")
	p.await(t, "changed=auth.token")
	if old, next := status("first"), status("second"); old != http.StatusUnauthorized || next != http.StatusOK {
		t.Errorf("old token %d, new one %d, want 401 and 200", old, next)
	}

	// A file that is wrong changes nothing, and is in /readyz until it is right.
	write(yaml, head+token+"\nlog:\n  level: lou")
	p.await(t, `msg="the node goes on with the configuration that it has`)
	if code, body, err := httpGet(p.addr, "/readyz"); err != nil || code != http.StatusOK || !strings.Contains(body, "alarm configuration (reload): ") || !strings.Contains(body, `log.level=\"lou\"`) {
		t.Errorf("/readyz: %d %s, %v", code, body, err)
	}
	if got := status("second"); got != http.StatusOK {
		t.Errorf("the token while the file is wrong: %d", got)
	}
	swap("") // a second fault
	p.await(t, "must hold a value, and is empty")
	write(yaml, head+token+"\nlog:\n  level: debug\n")
	swap("third\n")
	p.await(t, "alarm ended")
	p.await(t, "a file of the configuration has changed")
	p.await(t, "log.level\"\n")
	if got := status("third"); got != http.StatusOK {
		t.Errorf("the third token: %d", got)
	}
	if code, body, err := httpGet(p.addr, "/readyz"); err != nil || code != http.StatusOK || strings.Contains(body, "configuration") {
		t.Errorf("/readyz: %d %s, %v", code, body, err)
	}
	if got := strings.Count(p.log.String(), "the configuration is not reloaded"); got > 4 {
		t.Errorf("%d lines about two faults:\n%s", got, p.log)
	}
	if text := leafOK(t, "audit", "--data-dir", dir); !strings.Contains(text, "a changed file") {
		t.Errorf("leaf audit shows\n%s", text)
	}

	// Without an interval only leaf reload counts.
	write(yaml, "auth:\n  token-file: "+token+"\nreload-interval: 0s\n")
	p.await(t, "reload-interval log.level\"\n")
	p.end(t, syscall.SIGTERM)
}
