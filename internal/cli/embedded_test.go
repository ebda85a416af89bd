package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/leaf-idgen/leaf/internal/cli"
	"github.com/leaf-idgen/leaf/segment"
)

// embeddedSection is the heading in docs/OPERATIONS.md of what TestEmbeddedDatabaseAsTheDocumentSays does.
const embeddedSection = "Restore the embedded database"

// TestEmbeddedDatabaseAsTheDocumentSays: an older copy of leaf.db is put back, into what is left of the
// data directory or into a new one, as docs/OPERATIONS.md says. No ID of a tag repeats.
func TestEmbeddedDatabaseAsTheDocumentSays(t *testing.T) {
	t.Parallel()
	for name, lost := range map[string]bool{"leaf.db is lost": false, "the data directory is lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := dataDir(t)
			file := filepath.Join(dir, "leaf.db")
			leaf := func(args ...string) (int, string) { return runLeaf(t, append(args, "--data-dir", dir)...) }
			must := func(args ...string) string { return leafOK(t, append(args, "--data-dir", dir)...) }
			const old, later = "leaf-segment-test", "later"
			seen := map[string]map[string]bool{old: {}, later: {}}
			take := func(tag string) {
				t.Helper()
				for id := range strings.FieldsSeq(must("next", tag, "-n", "1500")) {
					if seen[tag][id] {
						t.Fatalf("ID %s of tag %s twice", id, tag)
					}
					seen[tag][id] = true
				}
			}
			take(old)
			backup, err := os.ReadFile(file) // no node runs
			if err != nil {
				t.Fatal(err)
			}
			must("tag", "create", later)
			p := serve(t, dir)
			take(old)
			take(later)
			p.end(t, syscall.SIGKILL)

			if lost {
				if err := os.RemoveAll(dir); err != nil {
					t.Fatal(err)
				}
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			for _, end := range []string{"-wal", "-shm"} {
				_ = os.Remove(file + end)
			}
			if err := os.WriteFile(file, backup, 0o600); err != nil {
				t.Fatal(err)
			}
			operate(t, file, "DELETE FROM leaf_worker_namespace")
			number := strconv.FormatInt(3000+3*segment.MaxStep, 10)
			if lost {
				must("tag", "set", old, "--max-id", number)
				must("tag", "create", later, "--start", number)
			}
			p = serve(t, dir)
			if !lost {
				if code, text := leaf("next", old); code == 0 || !strings.Contains(text, "tag repair") {
					t.Errorf("the node goes on below its numbers: %s", text)
				}
				must("tag", "repair", old)
			}
			take(old)
			if lost {
				take(later)
			}
			if waits := must("status", "--json"); !strings.Contains(waits, "is waiting") {
				t.Errorf("snowflake mode does not wait: %s", waits)
			}
			p.end(t, syscall.SIGTERM)
		})
	}
}

// TestCommandWithAnEmptyStore: a template has lost the value of what leads to the database of the nodes. A command makes no embedded
// database then, in which tags begin at 1. One that a node carries out needs no store.
func TestCommandWithAnEmptyStore(t *testing.T) {
	t.Parallel()
	dir, home := dataDir(t), t.TempDir()
	noStores := filepath.Join(home, "leaf.yaml")
	if err := os.WriteFile(noStores, []byte("store: []\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	try := func(variable, command string) (code int, stderr string) {
		var out, errs bytes.Buffer
		code = cli.Run(t.Context(), cli.Process{
			Args: strings.Fields(command), Stdout: &out, Stderr: &errs, Environ: []string{"HOME=" + home, patient, variable},
		})
		return code, errs.String()
	}
	in := " --data-dir " + dir
	for _, lost := range []struct{ variable, flags, key string }{
		{"LEAF_STORE=", in, "LEAF_STORE"},
		{"LEAF_STORE_FILE=", in, "LEAF_STORE_FILE"},
		{"LEAF_STORE= ; ", in, "store (LEAF_STORE)"},
		{"LEAF_CONFIG=", in, "LEAF_CONFIG"},
		{"LEAF_CONFIG=" + noStores, in, "store (leaf.yaml:1)"},
		{"LEAF_DATA_DIR=", "", "LEAF_DATA_DIR"},
	} {
		for _, command := range []string{"next order", "tag create order", "tag list", "schema apply", "worker list"} {
			code, stderr := try(lost.variable, command+lost.flags)
			if code != 2 || !strings.Contains(stderr, lost.key+": must not be empty") {
				t.Errorf("leaf %s with %s: exit code %d, %s", command, lost.variable, code, stderr)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "leaf.db")); err == nil {
		t.Error("a command has made leaf.db")
	}
	serve(t, dir, "--no-snowflake-enable")
	if code, stderr := try("LEAF_STORE=", "tag list"+in); code != 0 {
		t.Errorf("leaf tag list beside a node: exit code %d, %s", code, stderr)
	}
}
