package cli_test

import (
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/leaf-idgen/leaf/internal/test/server"
)

// etcdURL is the URL of a new store in etcd.
func etcdURL(t *testing.T) string {
	t.Helper()
	ns := server.Etcd(t)
	return "etcd://" + strings.Join(ns.Servers, ",") + "/" + strings.Trim(ns.Root, "/")
}

// TestCommandsInEtcd: each command that works on a database works on a store in etcd, without a node and
// beside one.
func TestCommandsInEtcd(t *testing.T) {
	t.Parallel()
	store, dir := etcdURL(t), dataDir(t)
	type step struct{ command, want string }
	run := func(steps ...step) {
		t.Helper()
		for _, s := range steps {
			args := append(strings.Fields(s.command), "--data-dir", dir)
			if out := leafOK(t, args...); !strings.Contains(out, s.want) {
				t.Errorf("leaf %s prints %q, want %q", s.command, out, s.want)
			}
		}
	}
	at := " --store " + store
	run(
		step{"schema apply" + at, "nothing to create: a store in etcd has no tables"},
		step{"worker init" + at, "ready"},
		step{"tag create order --step 10 --start 100 --max-step 50" + at, "100"},
		step{"next order -n 3" + at, "100\n101\n102\n"},
		step{"tag show order" + at, "103"}, // what was not used has been returned
		step{"tag set order --description text" + at, "text"},
		step{"limit set order --rate 500" + at, "500"},
		step{"token create shop --role issue" + at, "leaf_"},
	)
	p := serve(t, dir, "--store", store, "--snowflake-force-address")
	p.awaitReady(t)
	run(
		step{"next order", "103"},
		step{"tag list", "text"},
		step{"tag set order --step 20", "20 (to 50)"},
		step{"tag repair order --above 5000", "5001"},
		step{"next order", "5001"},
		step{"limit list", "500"},
		step{"token list", "shop"},
		step{"token revoke shop", "shop"},
		step{"worker list", "running"},
		step{"node list", p.addr},
		step{"status", "order"},
		step{"tag delete order --yes", "deleted order"},
		step{"tag create order --start 9000", "9000"},
		step{"audit", "tag delete"},
	)
	p.end(t, syscall.SIGTERM)
	run(
		step{"tag list" + at, "order"},
		step{"worker list" + at, "released"},
		step{"audit" + at, "token revoke"},
		step{"tag delete order --yes" + at, "deleted order"},
	)
}

// TestRowInEtcdAsTheDocumentSays corrects the row of a tag in strict order with the command of docs/OPERATIONS.md, and repairs it: no
// ID repeats, and the tag is in strict order as before.
func TestRowInEtcdAsTheDocumentSays(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/OPERATIONS.md")
	if err != nil {
		t.Fatal(err)
	}
	put := regexp.MustCompile("`etcdctl put (\\S+) '(.+)'`").FindStringSubmatch(string(page))
	if put == nil {
		t.Fatal("docs/OPERATIONS.md does not say how a row in etcd is corrected")
	}
	ns := server.Etcd(t)
	raw, err := clientv3.New(clientv3.Config{Endpoints: ns.Servers, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = raw.Close() })
	name := strings.Trim(ns.Root, "/")
	args := []string{"--store", "etcd://" + strings.Join(ns.Servers, ",") + "/" + name, "--no-snowflake-enable"}
	leafOK(t, "tag", "create", "leaf-segment-test", "--step", "2000", "--order", "strict", "--data-dir", dataDir(t), args[0], args[1])
	a, b := serve(t, dataDir(t), args...), serve(t, dataDir(t), args...)
	seen := distinct{}
	for _, node := range []*process{a, b} {
		node.awaitReady(t)
		seen.add(t, node.ids(t, 500))
	}
	key := strings.NewReplacer("NAME", name, "TAG", "leaf-segment-test").Replace(put[1])
	if was, err := raw.Get(t.Context(), key); err != nil || len(was.Kvs) != 1 {
		t.Fatalf("%s is no row: %v", key, err)
	}
	if _, err := raw.Put(t.Context(), key, put[2]); err != nil {
		t.Fatal(err)
	}
	leafOK(t, "tag", "repair", "leaf-segment-test", "--data-dir", b.dir)
	for _, node := range []*process{a, b} {
		seen.add(t, node.ids(t, 500))
	}
	if shown := leafOK(t, "tag", "show", "leaf-segment-test", "--data-dir", a.dir); !regexp.MustCompile(`order +strict`).MatchString(shown) {
		t.Errorf("the tag was in strict order; now: %s", shown)
	}
}
