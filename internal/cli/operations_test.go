package cli_test

import (
	"bytes"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// scripts are the indented blocks of a document.
func scripts(t *testing.T, path string) (blocks []string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	fenced, block := false, ""
	for line := range strings.Lines(string(text) + "\n") {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if !fenced && strings.HasPrefix(line, "    ") {
			block += strings.TrimSpace(line) + "\n"
			continue
		}
		if block != "" {
			blocks = append(blocks, block)
		}
		block = ""
	}
	return blocks
}

// databaseClients makes programs in a folder that go to the database of the test, whatever
// database they are told.
func databaseClients(t *testing.T, store string) (folder string) {
	t.Helper()
	u, err := url.Parse(store)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	folder = t.TempDir()
	for _, name := range []string{"mariadb", "mariadb-dump"} {
		path := server.Program(t, name, "mariadb-client")
		script := fmt.Sprintf("#!/bin/sh\nshift\nexec %s --no-defaults --protocol=tcp --host=%s --port=%s --user=%s --password='%s' %s \"$@\"\n",
			path, u.Hostname(), u.Port(), u.User.Username(), password, strings.TrimPrefix(u.Path, "/"))
		if err := os.WriteFile(filepath.Join(folder, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// TestOperationsDocument runs the commands of the document, as an operator types them. The
// first block prepares the database; then a node runs, and is started again when a command
// has ended it. The document itself waits for a node that was started again.
func TestOperationsDocument(t *testing.T) {
	t.Parallel()
	database := server.MariaDB(t)
	if v, err := database.Version(t.Context()); err != nil || !strings.Contains(v, "MariaDB") {
		t.Skipf("SKIPPED: the document has the commands of MariaDB, and this is %s, %v", v, err)
	}
	store, dir, work := database.URL(), dataDir(t), t.TempDir()
	path := databaseClients(t, store) + string(filepath.ListSeparator) + os.Getenv("PATH")
	var node *process
	admin := "" // its address for administration
	ran := 0
	for _, block := range scripts(t, "../../docs/OPERATIONS.md") {
		script := block
		if node != nil {
			script = strings.ReplaceAll(block, "127.0.0.1:8081", admin)
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-e", "-x", "-c", script)
		cmd.Dir = work
		cmd.Env = append(os.Environ(), "PATH="+path, "LEAF_DATA_DIR="+dir, "LEAF_STORE="+store, "GORACE="+noExitSleep, patient)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Run(); err != nil {
			t.Fatalf("%v, of\n%s\nwhich printed\n%s", err, block, &out)
		}
		ran++
		if node == nil {
			node = serve(t, dir, "--store", store)
			info, err := waitForNode(dir)
			if err != nil {
				t.Fatal(err)
			}
			admin = info.Admin
		}
		if strings.Contains(block, "leaf drain") {
			if err := <-node.done; err != nil {
				t.Fatalf("leaf drain ended the node with %v", err)
			}
			node = launch(t, dir, "leaf", "serve", "--data-dir", dir, "--http-addr", "127.0.0.1:0", "--admin-addr", admin, "--store", store)
		}
	}
	if ran < 9 {
		t.Errorf("only %d blocks were found", ran)
	}
}

// TestOpaqueDocument runs the commands of docs/OPAQUE.md, without a node.
func TestOpaqueDocument(t *testing.T) {
	t.Parallel()
	work, dir, ran := t.TempDir(), dataDir(t), ""
	leafOK(t, "tag", "create", "order", "--data-dir", dir)
	for _, block := range scripts(t, "../../docs/OPAQUE.md") {
		if !strings.HasPrefix(block, "leaf ") || strings.HasPrefix(block, "leaf serve") {
			continue
		}
		cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", block)
		cmd.Dir = work
		cmd.Env = append(os.Environ(), "LEAF_DATA_DIR="+dir, "GORACE="+noExitSleep)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v, of\n%s\nwhich printed\n%s", err, block, out)
		}
		ran += string(out)
	}
	if !regexp.MustCompile(`\n1\n2\n3\n[0-9A-Za-z]{11}\n[0-9A-Za-z]{11}\n[0-9A-Za-z]{11}\n$`).MatchString(ran) {
		t.Errorf("the document does not turn its texts back, or gets no texts:\n%s", ran)
	}
}
