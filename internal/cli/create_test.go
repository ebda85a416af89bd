package cli_test

import (
	"bytes"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/leaf-idgen/leaf/internal/cli"
)

// start is what a refusal says to type.
var start = regexp.MustCompile(`--start (\d+) or more`)

// TestCreateAgainAsTheTextSays: a tag is deleted and created again on the node that took
// the fewest numbers of it. The refusal names a start; typed literally, no ID repeats.
func TestCreateAgainAsTheTextSays(t *testing.T) {
	t.Parallel()
	store := "sqlite:" + filepath.Join(t.TempDir(), "shared.db")
	leafOK(t, "schema", "apply", "--store", store, "--data-dir", dataDir(t))
	leafOK(t, "tag", "create", "leaf-segment-test", "--step", "100", "--fixed-step", "--store", store, "--data-dir", dataDir(t))
	var nodes [2]*process
	for i := range nodes {
		nodes[i] = serve(t, dataDir(t), "--store", store, "--no-snowflake-enable")
	}
	seen := distinct{}
	seen.add(t, nodes[0].ids(t, 5))
	seen.add(t, nodes[1].ids(t, 500))
	dir := nodes[0].dir
	leafOK(t, "tag", "delete", "leaf-segment-test", "--yes", "--data-dir", dir)
	create := []string{"tag", "create", "leaf-segment-test", "--step", "100", "--fixed-step", "--data-dir", dir}
	var out, errs bytes.Buffer
	code := cli.Run(t.Context(), cli.Process{Args: create, Stdout: &out, Stderr: &errs})
	says := start.FindStringSubmatch(errs.String())
	if code == 0 || says == nil {
		t.Fatalf("exit code %d, %s; want a start that works", code, errs.String())
	}
	leafOK(t, append(create, "--start", says[1])...)
	for range 20 {
		seen.add(t, nodes[0].ids(t, 50))
	}
}
