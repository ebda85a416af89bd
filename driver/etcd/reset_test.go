package etcd_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leaf-idgen/leaf/driver/etcd"
)

// TestResetIsTyped: a shell hands etcdctl one key, whatever the name of the registry is. With a second word
// etcdctl del deletes every key between the two, also those of other registries.
func TestResetIsTyped(t *testing.T) {
	t.Parallel()
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "etcdctl"), []byte("#!/bin/sh\nprintf '%s\\n' \"$@\"\n"), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	for _, name := range []string{"prod", "my env", "it's", "$(id)", "a;b", "a*b", `a"b\c`, "a&b|c<d>e", "~", "#1", "-x", "订单"} {
		prefix := "/leaf/worker/" + name
		r, err := etcd.NewRecords(etcd.Config{Endpoints: []string{"127.0.0.1:1"}, Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		shell := exec.CommandContext(t.Context(), "/bin/sh", "-c", r.Info().Reset)
		shell.Env = []string{"PATH=" + bin}
		out, err := shell.CombinedOutput()
		if want := "del\n" + prefix + "/namespace\n"; err != nil || string(out) != want {
			t.Errorf("%q hands %q to etcdctl, %v; want %q", r.Info().Reset, out, err, want)
		}
		if name == "prod" && strings.ContainsAny(r.Info().Reset, "'\"") {
			t.Errorf("%q is quoted, and need not be", r.Info().Reset)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
