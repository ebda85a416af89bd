package cli_test

import (
	"fmt"
	"net/http"
	"os"
	"os/user"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// TestAuditOfANode: changes through the socket, over TCP and by a signal are in one log, with who
// asked and from where, and no token is in it.
func TestAuditOfANode(t *testing.T) {
	t.Parallel()
	f, dir := makeRemoteFiles(t), dataDir(t)
	node := serve(t, dir, "--admin-addr", "127.0.0.1:0", "--admin-token-file", f.token)
	if err := waitUntilServing(dir); err != nil {
		t.Fatal(err)
	}
	info, err := waitForNode(dir)
	if err != nil {
		t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	outputOf(t, "tag", "create", "order", "--data-dir", dir)
	remote := []string{"--endpoint", "http://" + info.Admin, "--admin-token-file", f.token}
	if code, out := elsewhere(t, nil, append([]string{"limit", "set", "order", "--block"}, remote...)...); code != 0 {
		t.Fatal(out)
	}
	token, err := os.ReadFile(f.token)
	if err != nil {
		t.Fatal(err)
	}
	reply := showTo(t, http.MethodPost, "http://"+info.Admin+"/v1/reload", "", http.Header{"Authorization": {"Bearer " + strings.TrimSpace(string(token))}, "X-Request-Id": {"abc-7"}})
	if !strings.Contains(reply, "200 OK") || !strings.Contains(reply, "X-Request-Id: abc-7") {
		t.Errorf("POST /v1/reload: %s", reply)
	}
	node.hangup(t, "configuration reloaded")
	outputOf(t, "drain", "--wait=false", "--delay", "1s", "--data-dir", dir) // the entry of the signal may come a little later than the log
	if err := <-node.done; err != nil {
		t.Fatal(err)
	}
	out := outputOf(t, "audit", "--data-dir", dir)
	for _, want := range []string{
		fmt.Sprintf("local user %s  socket, process ", me.Username), "tag create  tag order", "admin.token  ", "127.0.0.1:", "blocked false → true", ", request abc-7  reload",
		"signal SIGHUP  ", "drain  ", "delay 1s",
	} {
		if !strings.Contains(strings.Join(strings.Fields(out), "  "), strings.Join(strings.Fields(want), "  ")) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if strings.Contains(out, "s3cret") {
		t.Error("a token is in the audit log")
	}
}

// TestAuditWithoutItsTable: a change beside tables of an older program is carried out, and the
// command says that it is not recorded.
func TestAuditWithoutItsTable(t *testing.T) {
	t.Parallel()
	d := server.MariaDB(t)
	outputOf(t, "schema", "apply", "--store", d.URL())
	if _, err := d.Open(t).ExecContext(t.Context(), "DROP TABLE leaf_audit"); err != nil {
		t.Fatal(err)
	}
	code, out := elsewhere(t, nil, "tag", "create", "order", "--store", d.URL())
	if code != 0 || !strings.Contains(out, "leaf: warning: the change (tag create of tag order) is done, and not in the audit log: ") || !strings.Contains(out, "leaf schema apply") {
		t.Errorf("code %d:\n%s", code, out)
	}
	node := serve(t, dataDir(t), "--store", d.URL())
	outputOf(t, "drain", "--wait=false", "--delay", "1m", "--data-dir", node.dir)
	node.await(t, "an administrative change is not in the audit log")
	if code, out := elsewhere(t, nil, "audit", "--store", d.URL()); code != 4 || !strings.Contains(out, "leaf_audit") {
		t.Errorf("code %d:\n%s", code, out)
	}
}
