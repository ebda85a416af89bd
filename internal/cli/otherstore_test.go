package cli_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/leaf-idgen/leaf/internal/cli"
)

// TestNodeOfAnotherStore: LEAF_STORE names a database, and in the data directory runs a node of another
// one, such as the demo node. The command works on the node's database, and says so: its user would
// believe that the tag is in the one that the variable names.
func TestNodeOfAnotherStore(t *testing.T) {
	t.Parallel()
	mine := "sqlite:" + filepath.Join(t.TempDir(), "mine.db")
	outputOf(t, "schema", "apply", "--store", mine) // two nodes that make the tables at once answer a little before they are there
	for _, tt := range []struct {
		name, nodes, variable string
		warns                 bool
	}{
		{"the demo node", "", mine, true},
		{"the node of this store", mine, mine, false},
		{"no variable", mine, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := dataDir(t)
			args := []string{"--no-snowflake-enable"}
			if tt.nodes != "" {
				args = append(args, "--store", tt.nodes)
			}
			p := serve(t, dir, args...)
			var out bytes.Buffer
			environ := []string{"HOME=" + t.TempDir(), patient, "LEAF_DATA_DIR=" + dir}
			if tt.variable != "" {
				environ = append(environ, "LEAF_STORE="+tt.variable)
			}
			if code := cli.Run(t.Context(), cli.Process{Args: []string{"tag", "list"}, Stdout: &out, Stderr: &out, Environ: environ}); code != 0 {
				t.Errorf("exit code %d: %s", code, &out)
			}
			if got := strings.Contains(out.String(), "leaf: warning: the node that runs in data directory "+dir+" uses the store sqlite:"); got != tt.warns {
				t.Errorf("warns: %v, want %v: %s", got, tt.warns, &out)
			}
			p.end(t, syscall.SIGTERM)
		})
	}
}
