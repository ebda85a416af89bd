package main_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/long"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if programFolder != "" {
		_ = os.RemoveAll(programFolder)
	}
	os.Exit(code)
}

var programFolder string

// program builds the command once: a signal must meet the real process.
var program = sync.OnceValues(func() (string, error) {
	var err error
	if programFolder, err = os.MkdirTemp("", "withservers-test-"); err != nil {
		return "", err
	}
	path := filepath.Join(programFolder, "withservers")
	if output, err := exec.Command("go", "build", "-ldflags=-w", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, output)
	}
	return path, nil
})

func TestExitCode(t *testing.T) {
	t.Parallel()
	env := elsewhere(t)
	for _, tt := range []struct {
		name string
		args []string
		want int
	}{
		{"success", []string{"--", "true"}, 0},
		{"failure", []string{"--", "sh", "-c", "exit 7"}, 7},
		{"killed by a signal", []string{"--", "sh", "-c", "kill -USR1 $$"}, 128 + int(syscall.SIGUSR1)},
		{"no such command", []string{"--", "no-such-command"}, 1},
		{"nothing to run", nil, 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := start(t, env, tt.args...)
			if got := r.wait(t); got != tt.want {
				t.Errorf("exit code %d, want %d\n%s", got, tt.want, &r.stderr)
			}
			r.leftNothing(t)
		})
	}
}

func TestCommandFindsServersAndTheyEndWithIt(t *testing.T) {
	t.Parallel()
	server.Require(t)
	for _, tt := range []struct {
		name   string
		signal syscall.Signal // 0: none
		script string
		want   int
	}{
		{"end", 0, `while [ ! -e "$GO" ]; do sleep 0.05; done; exit 3`, 3},
		{"interrupt", syscall.SIGINT, "while :; do sleep 0.05; done", 4},
		{"terminate", syscall.SIGTERM, "while :; do sleep 0.05; done", 128 + int(syscall.SIGTERM)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.signal == syscall.SIGINT && !long.Asked() {
				t.Skip("run make test-long")
			}
			t.Parallel()
			r := start(t, []string{"LEAF_TEST_MYSQL=", "LEAF_TEST_MYSQL_NEWEST=", "LEAF_TEST_POSTGRES=", "LEAF_TEST_ZOOKEEPER=", "LEAF_TEST_ETCD="},
				"--", "sh", "-c", `trap "exit 4" INT; `+tellServers+"; "+tt.script)
			found := strings.Fields(r.line(t))
			if len(found) != 4 {
				t.Fatalf("the command found %q, want four servers\n%s", found, &r.stderr)
			}
			if _, err := server.ZooKeeperVersion(t.Context(), found[2]); err != nil {
				t.Error(err)
			}
			if _, err := server.EtcdVersion(t.Context(), found[3]); err != nil {
				t.Error(err)
			}
			addrs := found[2:]
			for _, text := range found[:2] {
				d, err := server.ParseDatabase(text)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := d.Version(t.Context()); err != nil {
					t.Error(err)
				}
				addrs = append(addrs, d.Addr())
			}
			if tt.signal != 0 {
				r.signal(t, tt.signal)
			} else if err := os.WriteFile(r.gate, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := r.wait(t); got != tt.want {
				t.Errorf("exit code %d, want %d\n%s", got, tt.want, &r.stderr)
			}
			for _, addr := range addrs {
				if c, err := net.Dial("tcp", addr); err == nil {
					c.Close()
					t.Errorf("%s still accepts", addr)
				}
			}
			r.leftNothing(t)
		})
	}
}

func TestSignalReachesWhatTheCommandStarted(t *testing.T) {
	t.Parallel()
	// The outer shell dies of SIGTERM; the inner one ignores it and is killed.
	r := start(t, elsewhere(t), "--", "sh", "-c",
		`sh -c 'trap "" TERM; echo $$; while :; do sleep 0.1; done' & wait`)
	inner, err := strconv.Atoi(r.line(t))
	if err != nil {
		t.Fatal(err)
	}
	r.signal(t, syscall.SIGTERM)
	if got, want := r.wait(t), 128+int(syscall.SIGTERM); got != want {
		t.Errorf("exit code %d, want %d", got, want)
	}
	waitUntil(t, "the inner shell is gone", func() bool { return !runs(inner) })
	r.leftNothing(t)
}

func TestSecondSignalKills(t *testing.T) {
	t.Parallel()
	r := start(t, elsewhere(t), "--", "sh", "-c", `trap "echo heard" INT; echo ready; while :; do sleep 0.1; done`)
	r.line(t)
	r.signal(t, syscall.SIGINT)
	if got := r.line(t); got != "heard" {
		t.Errorf("after the first signal the command says %q", got)
	}
	r.signal(t, syscall.SIGINT)
	if got, want := r.wait(t), 128+int(syscall.SIGKILL); got != want {
		t.Errorf("exit code %d, want %d", got, want)
	}
	r.leftNothing(t)
}

func TestNamedServersAreUsed(t *testing.T) {
	t.Parallel()
	mysql, postgres := server.MariaDB(t), server.Postgres(t)
	zooKeeper, etcd := server.ZooKeeper(t).Servers[0], server.Etcd(t).Servers[0]
	r := start(t, []string{
		"LEAF_TEST_MYSQL=" + mysql.URL(), "LEAF_TEST_POSTGRES=" + postgres.URL(),
		"LEAF_TEST_ZOOKEEPER=" + zooKeeper, "LEAF_TEST_ETCD=" + etcd,
	}, "--", "sh", "-c", tellServers)
	if got, want := r.line(t), strings.Join([]string{mysql.URL(), postgres.URL(), zooKeeper, etcd}, " "); got != want {
		t.Errorf("the command found %q, want %q", got, want)
	}
	r.wait(t)
	for _, d := range []server.Database{mysql, postgres} {
		if report := r.stderr.String(); strings.Contains(report, d.URL()) || !strings.Contains(report, d.Redacted()) {
			t.Errorf("the report is to name %s, without its password:\n%s", d.Redacted(), report)
		}
	}
}

func TestNamedServerThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	there := elsewhere(t)
	for _, tt := range []struct{ name, gone string }{
		{"MariaDB", "LEAF_TEST_MYSQL=mysql://root@127.0.0.1:1/x"},
		{"PostgreSQL", "LEAF_TEST_POSTGRES=postgres://u@127.0.0.1:1/x"},
		{"ZooKeeper", "LEAF_TEST_ZOOKEEPER=127.0.0.1:1"},
		{"etcd", "LEAF_TEST_ETCD=127.0.0.1:1"},
		{"malformed", "LEAF_TEST_ETCD=localhost"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := start(t, append(slices.Clone(there), tt.gone), "--", "sh", "-c", "echo it ran >&2")
			if got := r.wait(t); got != 1 || strings.Contains(r.stderr.String(), "it ran") {
				t.Errorf("exit code %d, want 1 and no run\n%s", got, &r.stderr)
			}
			r.leftNothing(t)
		})
	}
}

// tellServers is a script that prints what it found.
const tellServers = "echo $LEAF_TEST_MYSQL $LEAF_TEST_POSTGRES $LEAF_TEST_ZOOKEEPER $LEAF_TEST_ETCD"

// elsewhere names a server of each kind, so that the command starts none of its
// own.
func elsewhere(t *testing.T) []string {
	t.Helper()
	return []string{
		"LEAF_TEST_MYSQL=" + server.MariaDB(t).URL(), "LEAF_TEST_POSTGRES=" + server.Postgres(t).URL(),
		"LEAF_TEST_ZOOKEEPER=" + server.ZooKeeper(t).Servers[0], "LEAF_TEST_ETCD=" + server.Etcd(t).Servers[0],
	}
}

// running is one run of the program, with a temporary folder of its own.
type running struct {
	cmd    *exec.Cmd
	folder string // its TMPDIR
	gate   string // $GO: a file whose creation a script may wait for
	stdout *bufio.Scanner
	stderr bytes.Buffer
}

func start(t *testing.T, env []string, args ...string) *running {
	t.Helper()
	path, err := program()
	if err != nil {
		t.Fatal(err)
	}
	folder, err := os.MkdirTemp("", "ws-") //nolint:usetesting // t.TempDir's is closed to the user postgres
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	r := &running{folder: folder, gate: filepath.Join(t.TempDir(), "go")}
	if !slices.Contains(args, "-newest") { // the network is not to be tested
		args = append([]string{"-newest="}, args...)
	}
	r.cmd = exec.Command(path, args...)
	r.cmd.Env = append(append(os.Environ(), "TMPDIR="+folder, "GO="+r.gate), env...)
	r.cmd.Stderr = &r.stderr
	stdout, err := r.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.stdout = bufio.NewScanner(stdout)
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.cmd.Process.Kill() }) // after a failed test; the servers die with it
	return r
}

// line returns the next line that the command prints, "" at the end.
func (r *running) line(t *testing.T) string {
	t.Helper()
	r.stdout.Scan()
	return r.stdout.Text()
}

func (r *running) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		t.Fatalf("send %v: %v", s, err)
	}
}

// wait returns the exit code.
func (r *running) wait(t *testing.T) int {
	t.Helper()
	_ = r.cmd.Wait() // the exit code says it all
	return r.cmd.ProcessState.ExitCode()
}

func (r *running) leftNothing(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(r.folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range left {
		t.Errorf("left behind: %s", e.Name())
	}
}

// runs reports whether the process is there and not just a zombie.
func runs(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !bytes.Contains(stat, []byte(") Z "))
}

func waitUntil(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(10 * time.Second); !ok(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}
