package cli_test

import (
	"strings"
	"syscall"
	"testing"

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
