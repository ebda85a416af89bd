package cli_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/cli"
)

// TestCommandsTakeAnEndpoint: every command that asks a running node can ask one of another
// machine, and takes no token in its arguments, which other users of the machine can read.
func TestCommandsTakeAnEndpoint(t *testing.T) {
	t.Parallel()
	// These work on files and tables, and ask no node.
	local := []string{"serve", "fence rebuild", "schema print", "schema apply", "config check"}
	found := 0
	for command, help := range helpOf() {
		if !strings.Contains(help, "--data-dir=") || slices.Contains(local, command) {
			continue
		}
		found++
		for _, flag := range []string{"--endpoint=", "--endpoint-ca=", "--endpoint-server-name=", "--admin-token-file="} {
			if !strings.Contains(help, flag) {
				t.Errorf("leaf %s has no %s", command, flag)
			}
		}
		if strings.Contains(help, "--admin-token=") {
			t.Errorf("leaf %s has --admin-token", command)
		}
	}
	if found < 15 {
		t.Errorf("only %d commands ask a node", found)
	}
}

// remoteFiles are a certificate for 127.0.0.1, its key, and files with a right and a wrong token.
type remoteFiles struct{ cert, key, token, wrong string }

func makeRemoteFiles(t *testing.T) remoteFiles {
	t.Helper()
	s := httptest.NewTLSServer(http.NotFoundHandler())
	s.Close()
	key, err := x509.MarshalPKCS8PrivateKey(s.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return remoteFiles{
		write("cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})),
		write("key.pem", pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})),
		write("token", []byte("s3cret\n")), write("wrong", []byte("s3cre\n")),
	}
}

// elsewhere runs a command on a machine without a node, and checks that it makes no file there.
func elsewhere(t *testing.T, environ []string, args ...string) (code int, out string) {
	t.Helper()
	home := t.TempDir()
	var both bytes.Buffer
	code = cli.Run(t.Context(), cli.Process{Args: args, Stdout: &both, Stderr: &both, Environ: append([]string{"HOME=" + home, patient}, environ...)})
	err := filepath.WalkDir(home, func(path string, _ fs.DirEntry, err error) error {
		if path != home {
			t.Errorf("leaf %s made %s", strings.Join(args, " "), path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return code, both.String()
}

// TestEndpoint: what a person types against a node of another machine, from a look at its tags
// to its drain. Nothing is opened on the machine of the command.
func TestEndpoint(t *testing.T) {
	t.Parallel()
	f, dir := makeRemoteFiles(t), dataDir(t)
	p := serve(t, dir, "--admin-addr", "0.0.0.0:0", "--admin-token-file", f.token, "--tls-cert", f.cert, "--tls-key", f.key, "--snowflake-layout", "dc", "--snowflake-datacenter", "3")
	p.await(t, `msg="snowflake mode" state=serving`)
	info, err := waitForNode(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(info.Admin)
	if err != nil {
		t.Fatal(err)
	}
	environ := []string{"LEAF_ENDPOINT=https://127.0.0.1:" + port, "LEAF_ENDPOINT_CA=" + f.cert, "LEAF_ADMIN_TOKEN_FILE=" + f.token}
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"tag create order --start 7", 0, "order"},
		{"next order -n 2", 0, "7\n8\n"},
		{"next --snowflake", 0, "\n"},
		{"limit set order --quota 5000000", 0, "order"},
		{"limit list", 0, "5000000"},
		{"worker list", 0, "this node"},
		{"decode 1541815603606036480", 0, "layout      dc\n"},
		{"decode --from 2022-06-28T16:07:40.105Z --layout js53", 0, "layout  js53\n"},
		{"status", 0, "snowflake  ready\n"},
		{"status --quiet", 0, ""},
		{"status --watch --tags 1001", 2, "must be 0 to 1000"},
		{"tag show nope", 3, "unknown tag"},
		{"node weight 7", 5, "no directory of nodes"},
		{"tag list --admin-token-file " + f.wrong, 4, "refuses the token in " + f.wrong},
		{"tag list --endpoint-server-name other.example", 4, "--endpoint-server-name"},
		{"tag list --endpoint-ca " + f.token, 2, "must hold a certificate"},
		{"tag list --endpoint http://127.0.0.1:" + port, 4, "needs https://"},
		{"tag list --endpoint http://node.example:" + port, 2, "must begin with https://"},
		{"tag list --data-dir " + dir, 2, "leave out --data-dir"},
		{"tag delete order --yes --store sqlite:x.db", 2, "(LEAF_ENDPOINT): asks a node that knows its own data, so leave out --store"},
		{"worker init --snowflake-name other", 2, "leave out --snowflake-name"},
		{"drain --delay 0s", 0, "stopped\n"},
		{"tag list", 4, "no process listens at https://127.0.0.1:" + port},
	} {
		if code, out := elsewhere(t, environ, strings.Fields(tt.args)...); code != tt.code || !strings.Contains(out, tt.want) {
			t.Errorf("leaf %s: exit code %d, want %d and %q: %s", tt.args, code, tt.code, tt.want, out)
		}
	}
	select {
	case err := <-p.done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(20 * time.Second):
		t.Error("the node was not drained")
	}
}

// TestEndpointFlags: what is missing or meant for an endpoint is refused, and no command goes
// on with the data of its own machine instead.
func TestEndpointFlags(t *testing.T) {
	t.Parallel()
	f := makeRemoteFiles(t)
	for args, want := range map[string]string{
		"tag list --endpoint https://127.0.0.1:1":                                    "needs a token: name a file",
		"tag list --endpoint https://127.0.0.1:1 --admin-token-file /none":           "no such file",
		"tag list --endpoint https://127.0.0.1:1 --endpoint-ca /none":                "needs a token",
		"tag list --admin-token-file " + f.token:                                     "is for --endpoint, and none is set",
		"tag create a --endpoint-ca " + f.cert:                                       "needs --endpoint, and none is set",
		"drain --endpoint-server-name a":                                             "needs --endpoint, and none is set",
		"tag list --endpoint= --admin-token-file " + f.token:                         "must not be empty",
		"tag list --admin-token s3cret":                                              "unknown flag",
		"fence rebuild --endpoint https://127.0.0.1:1 --admin-token-file " + f.token: "unknown flag --endpoint",
		"serve --endpoint https://127.0.0.1:1":                                       "unknown flag --endpoint",
	} {
		if code, out := elsewhere(t, nil, strings.Fields(args)...); code != 2 || !strings.Contains(out, want) {
			t.Errorf("leaf %s: exit code %d, want 2 and %q: %s", args, code, want, out)
		}
	}
}
