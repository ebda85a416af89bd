package cli_test

import (
	"bytes"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/cli"
)

// start is what a refusal says to type.
var start = regexp.MustCompile(`--start (\d+) or more`)

// makesOne is what the error of an unknown tag says to type.
var makesOne = regexp.MustCompile(`unknown tag; .*(leaf tag create) makes one`)

// TestCreateAgainAsTheTextSays: a tag is deleted, with the command or with SQL, and created
// again. What the error of an unknown tag says is typed literally, and then what the refusal
// says. No ID repeats, whoever asks: the node that took the fewest numbers, a node that never
// served the tag, or a command that opens the database without any node.
func TestCreateAgainAsTheTextSays(t *testing.T) {
	t.Parallel()
	onFirst := func(_ *testing.T, _ string, nodes [2]*process) []string { return []string{"--data-dir", nodes[0].dir} }
	for _, c := range []struct {
		name string
		sql  bool // an operator deletes the row
		at   func(t *testing.T, store string, nodes [2]*process) []string
	}{
		{"on a node that served it", false, onFirst},
		{"with SQL, on a node that served it", true, onFirst},
		{"on a node that never served it", false, func(t *testing.T, store string, _ [2]*process) []string {
			dir := dataDir(t)
			serve(t, dir, "--store", store, "--no-snowflake-enable")
			if err := waitUntilServing(dir); err != nil {
				t.Fatal(err)
			}
			return []string{"--data-dir", dir}
		}},
		{"with --store", false, func(t *testing.T, store string, _ [2]*process) []string {
			return []string{"--store", store, "--data-dir", dataDir(t)}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
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
			at := c.at(t, store, nodes)
			if c.sql {
				operate(t, store, "DELETE FROM leaf_alloc WHERE biz_tag = 'leaf-segment-test'")
			} else {
				leafOK(t, append([]string{"tag", "delete", "leaf-segment-test", "--yes"}, at...)...)
			}

			says := leafFails(t, makesOne, append([]string{"tag", "show", "leaf-segment-test"}, at...)...)
			create := append(append(strings.Fields(says)[1:], "leaf-segment-test"), at...)
			says = leafFails(t, start, create...)
			leafOK(t, append(create, "--start", says)...)
			for range 20 {
				for _, n := range nodes { // one that looked for the row meanwhile takes the tag for unknown until segment.negative-ttl ends
					n.awaitIDs(t, seen, 50)
				}
			}
		})
	}
}

// leafFails runs a command that must fail, and returns what its error says to type.
func leafFails(t *testing.T, says *regexp.Regexp, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	code := cli.Run(t.Context(), cli.Process{Args: args, Stdout: &out, Stderr: &errs, Environ: []string{"HOME=" + t.TempDir(), patient}})
	found := says.FindStringSubmatch(errs.String())
	if code == 0 || found == nil {
		t.Fatalf("leaf %s: exit code %d, %s%s; want an error with %v", strings.Join(args, " "), code, out.String(), errs.String(), says)
	}
	return found[1]
}
