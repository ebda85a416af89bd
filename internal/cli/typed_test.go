package cli_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/cli"
)

// TestWhatIsTypedWrongly: what a command says of arguments that it cannot use. Nothing is
// changed, and nothing else than what was typed is blamed.
func TestWhatIsTypedWrongly(t *testing.T) {
	t.Parallel()
	store := "sqlite:" + filepath.Join(t.TempDir(), "leaf.db")
	leafOK(t, "schema", "apply", "--store", store, "--data-dir", dataDir(t))
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"decode", "-5"}, 2, `argument 2="-5": must not be negative; the value of a flag is written --flag=-5`},
		{[]string{"worker", "show", "99999", "--store", store}, 2, `worker="99999": must be 0 to 1023, the worker IDs of the layout`},
		{[]string{"worker", "show", "7", "--store", store}, 5, "worker ID 7 was never used"},
		{[]string{"tag", "create", "\xff\xfe", "--store", store}, 2, "must be valid UTF-8"},
		{[]string{"tag", "create", ".", "--store", store}, 2, "must not be a dot or two"},
		{[]string{"tag", "create", "..", "--store", store}, 2, "must not be a dot or two"},
	} {
		if code, text := runLeaf(t, append(tt.args, "--data-dir", dataDir(t))...); code != tt.code || !strings.Contains(text, tt.want) || strings.Contains(text, "did you mean") {
			t.Errorf("leaf %q: exit code %d, %s; want %d and %q", tt.args, code, text, tt.code, tt.want)
		}
	}
	if out := outputOf(t, "tag", "list", "--store", store, "--data-dir", dataDir(t)); strings.Count(out, "\n") != 1 {
		t.Errorf("tags were created:\n%s", out)
	}
}

// TestStateOfATag: programs need not know what the absence of a field means.
func TestStateOfATag(t *testing.T) {
	t.Parallel()
	store := "sqlite:" + filepath.Join(t.TempDir(), "leaf.db")
	leafOK(t, "schema", "apply", "--store", store, "--data-dir", dataDir(t))
	leafOK(t, "tag", "create", "order", "--store", store, "--data-dir", dataDir(t))
	var out, errs bytes.Buffer
	args := []string{"tag", "show", "order", "--json", "--store", store, "--data-dir", dataDir(t)}
	if code := cli.Run(t.Context(), cli.Process{Args: args, Stdout: &out, Stderr: &errs}); code != 0 {
		t.Fatalf("exit code %d, %s", code, &errs)
	}
	var tag struct{ State string }
	if err := json.Unmarshal(out.Bytes(), &tag); err != nil || tag.State != "ok" {
		t.Errorf("state %q, %v, in %s", tag.State, err, &out)
	}
}
