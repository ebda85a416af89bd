package cli_test

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/leaf-idgen/leaf/internal/cli"
)

// live runs leaf verify --live with a folder for its files, and returns what is left there.
func live(t *testing.T, args ...string) (code int, out, errs string, left []string) {
	t.Helper()
	temp := t.TempDir()
	var stdout, stderr bytes.Buffer
	code = cli.Run(t.Context(), cli.Process{Args: append([]string{"verify", "--live", "-q", "--temp", temp}, args...), Stdout: &stdout, Stderr: &stderr})
	left, err := filepath.Glob(filepath.Join(temp, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return code, stdout.String(), stderr.String(), left
}

// TestVerifyLiveFindsARepeat: a service that hands out a number twice is found out, and the IDs
// that prove it are kept where the text says.
func TestVerifyLiveFindsARepeat(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		id := n.Add(1)
		if id == 70 {
			id = 7
		}
		fmt.Fprintln(w, id)
	}))
	defer s.Close()
	code, out, errs, left := live(t, "--url", s.URL, "--tag", "a", "--ids", "100")
	if code != 1 || !strings.Contains(out, "found: duplicate IDs: 1") || len(left) != 1 {
		t.Fatalf("exit code %d, %s, %s, left %q", code, out, errs, left)
	}
	again := regexp.MustCompile(`look at them again with leaf verify (\S+)\*`).FindStringSubmatch(errs)
	if again == nil {
		t.Fatalf("no command in %q", errs)
	}
	logs, err := filepath.Glob(again[1] + "*")
	if err != nil {
		t.Fatal(err)
	}
	var again2 bytes.Buffer
	if code := cli.Run(t.Context(), cli.Process{Args: append([]string{"verify", "-q"}, logs...), Stdout: &again2, Stderr: &again2}); code != 1 || !strings.Contains(again2.String(), "duplicate IDs: 1") {
		t.Errorf("what the text says: exit code %d, %s", code, again2.String())
	}
}

// TestVerifyLiveStrict: a service that once hands out a smaller number than before is found out by
// the times of the calls, and the text names a command that finds it again.
func TestVerifyLiveStrict(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		id := 2 * n.Add(1)
		if id == 140 {
			id = 1 // below all: on a busy machine one client may stand still while the other one asks often
		}
		fmt.Fprintln(w, id)
	}))
	defer s.Close()
	code, out, errs, left := live(t, "--strict", "--any-order", "--url", s.URL, "--tag", "a", "--ids", "100", "--clients", "2")
	if code != 1 || !strings.Contains(out, "found: IDs against real time: 1\n") || len(left) != 1 {
		t.Fatalf("exit code %d, %s, %s, left %q", code, out, errs, left)
	}
	again := regexp.MustCompile(`look at them again with leaf verify --strict (\S+)\*`).FindStringSubmatch(errs)
	if again == nil {
		t.Fatalf("no command in %q", errs)
	}
	logs, err := filepath.Glob(again[1] + "*")
	if err != nil {
		t.Fatal(err)
	}
	var out2 bytes.Buffer
	if code := cli.Run(t.Context(), cli.Process{Args: append([]string{"verify", "-q", "--strict"}, logs...), Stdout: &out2, Stderr: &out2}); code != 1 || !strings.Contains(out2.String(), "IDs against real time: 1") {
		t.Errorf("what the text says: exit code %d, %s", code, out2.String())
	}
}

// TestVerifyLiveWithoutIDs gives no verdict, and leaves nothing behind.
func TestVerifyLiveWithoutIDs(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--url http://127.0.0.1:1 --tag a --duration 1s": "no verdict: no request was answered with IDs: connection refused",
		"--duration 50ms":                 "expected --tag, --sequence or --snowflake; see leaf verify --help",
		"--tag a ids.log":                 "reads no file",
		"--tag a --endpoint-ca x":         "endpoint-ca",
		"--tag a --auth-token-file /none": "/none",
	} {
		if code, out, errs, left := live(t, strings.Fields(args)...); code != 2 || out != "" || !strings.Contains(errs, want) || len(left) != 0 {
			t.Errorf("%s: exit code %d, want 2 and %q: %s%s, left %q", args, code, want, out, errs, left)
		}
	}
}

// TestVerifyLiveOfSome: a node, or a tag, of which no ID came was compared with nothing, and a reply
// that is no ID was not compared either. A fault of the others is found all the same.
func TestVerifyLiveOfSome(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := n.Add(1)
		switch tag := filepath.Base(r.URL.Path); {
		case strings.Contains(r.URL.Path, "gone"):
			w.WriteHeader(http.StatusServiceUnavailable)
		case tag == "odd" && id%8 == 0:
			fmt.Fprintln(w, "-", id)
		case tag == "twice":
			fmt.Fprintln(w, 7)
		case r.URL.Query().Get("count") == "2":
			fmt.Fprintf(w, `{"ids":["%d","%d"]}`, 2*id, 2*id+1)
		default:
			fmt.Fprintln(w, id)
		}
	}))
	defer s.Close()
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"--tag a --tag b", 0, "clean: no ID repeats"},
		{"--tag a --url http://127.0.0.1:1", 2, "no verdict: not all were compared: no ID came from http://127.0.0.1:1"},
		{"--tag a --tag gone", 2, `no verdict: not all were compared: no ID came of tag "gone"`},
		{"--tag odd", 2, "replies were no IDs"},
		{"--tag twice --url http://127.0.0.1:1", 1, "duplicate IDs: 1"},
		{"--sequence a --entities 1000 --count 2", 0, "clean: no ID repeats"}, // a short run does not reach all of them
		{"--tag a --sequence gone", 2, `no ID came of sequence "gone"`},
	} {
		code, out, errs, _ := live(t, append(strings.Fields(tt.args), "--url", s.URL, "--ids", "100")...)
		if code != tt.code || !strings.Contains(out+errs, tt.want) || code == 2 && strings.Contains(out, "clean") {
			t.Errorf("%s: exit code %d, want %d and %q: %s%s", tt.args, code, tt.code, tt.want, out, errs)
		}
	}
}

// TestLoadOfASecuredNode: bench and verify --live show the token, and trust the authority, that
// the variables of the other commands name.
func TestLoadOfASecuredNode(t *testing.T) {
	t.Parallel()
	f, dir := makeRemoteFiles(t), dataDir(t)
	p := serve(t, dir, "--auth-token-file", f.token, "--tls-cert", f.cert, "--tls-key", f.key, "--grpc-addr", "off", "--resp-addr", "off")
	p.await(t, `msg="snowflake mode" state=serving`)
	_, port, err := net.SplitHostPort(p.addr)
	if err != nil {
		t.Fatal(err)
	}
	environ := []string{"LEAF_ENDPOINT_CA=" + f.cert, "LEAF_AUTH_TOKEN_FILE=" + f.token, "TMPDIR=" + t.TempDir()}
	for _, tt := range []struct {
		args string
		code int
		want string
	}{
		{"bench --ids 100", 0, "failed    0"},
		{"verify --live --ids 100", 0, "clean: no ID repeats within its key"},
		{"bench --ids 100 --auth-token-file " + f.wrong, 5, "name the file of a token with --auth-token-file"},
		{"bench --ids 100 --endpoint-server-name other.example", 1, "or a name of it with --endpoint-server-name"},
	} {
		args := append(strings.Fields(tt.args), "--url", "https://127.0.0.1:"+port, "--tag", "leaf-segment-test", "--snowflake", "-q")
		if code, out := elsewhere(t, environ, args...); code != tt.code || !strings.Contains(out, tt.want) {
			t.Errorf("leaf %s: exit code %d, want %d and %q: %s", tt.args, code, tt.code, tt.want, out)
		}
	}
	if err := os.RemoveAll(f.token); err != nil {
		t.Fatal(err)
	}
	p.end(t, syscall.SIGTERM)
}
