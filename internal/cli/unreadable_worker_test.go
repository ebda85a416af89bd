package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestUnreadableWorkerIDIssuesBelowUnknown: the clock of the owner of a worker ID was a day ahead, and its record cannot be read. An
// operator who gives the nodes another registry goes by what leaf worker list shows, and the line must not look like that of a
// number that has issued nothing.
func TestUnreadableWorkerIDIssuesBelowUnknown(t *testing.T) {
	t.Parallel()
	store := "sqlite:" + filepath.Join(t.TempDir(), "leaf.db")
	at := []string{"--store", store, "--data-dir", dataDir(t)}
	leafOK(t, append([]string{"schema", "apply"}, at...)...)
	leafOK(t, append([]string{"worker", "init"}, at...)...)
	const insert = "INSERT INTO leaf_worker (id, address, nonce, floor, bound, released, extends, version) VALUES "
	operate(t, store, insert+"(7, '10.0.0.1:8080', 'n', -1, 0, 0, 0, 'v'), (8, '10.0.0.2:8080', 'm', 1, 1, 1, 0, 'v')")
	list := leafOK(t, append([]string{"worker", "list"}, at...)...)
	for _, line := range []string{`(?m)^7 +- +unreadable +unknown$`, `(?m)^8 +10\.0\.0\.2:8080 +released +-$`} {
		if !regexp.MustCompile(line).MatchString(list) {
			t.Errorf("leaf worker list prints\n%swithout a line %s", list, line)
		}
	}
	if shown := leafOK(t, append([]string{"worker", "show", "7"}, at...)...); !regexp.MustCompile(`(?m)^issues below +unknown$`).MatchString(shown) {
		t.Errorf("leaf worker show prints\n%s", shown)
	}
	page, err := os.ReadFile("../../docs/SNOWFLAKE.md")
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.Join(strings.Fields(string(page)), " "); !strings.Contains(text, "where the list says `unknown`: wait for as long as the clock") {
		t.Error("SNOWFLAKE.md does not say how long to wait for such a number")
	}
}
