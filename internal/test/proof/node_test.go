package proof_test

import (
	"bufio"
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/internal/test/program"
	"github.com/leaf-idgen/leaf/internal/test/proxy"
	"github.com/leaf-idgen/leaf/internal/test/server"
)

// binary is the program under test, built once by TestMain.
var binary string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	folder, err := server.NewFolder("", "leaf-proof")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = folder.Remove() }()
	binary = filepath.Join(folder.Path(), "leaf")
	if err := program.Build(context.Background(), binary); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	flag.Parse()
	if !given("test.parallel") { // these tests mostly wait: let more of them wait side by side than there are processors
		_ = flag.Set("test.parallel", "5")
	}
	return m.Run()
}

// given says whether a flag was set on the command line.
func given(name string) (set bool) {
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == name })
	return set
}

// node is one `leaf serve` with its data directory, which survives its processes.
type node struct {
	name   string
	dir    string
	args   []string
	mode   string // "segment" or "snowflake"
	binary string
	env    []string     // nil: ours
	link   *proxy.Proxy // to its registry; nil without

	mu    sync.Mutex
	url   string
	cmd   *exec.Cmd
	began time.Time
	log   bytes.Buffer
}

// newNode describes a node; start runs it.
func newNode(t *testing.T, name, store string) *node {
	t.Helper()
	folder, err := server.NewFolder("", "leaf-node") // short, because a Unix socket's path is
	if err != nil {
		t.Fatal(err)
	}
	n := &node{name: name, dir: filepath.Join(folder.Path(), name), mode: "segment", binary: binary}
	n.args = []string{"serve", "--no-snowflake-enable", "--data-dir", n.dir, "--store", store, "--http-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0", "--resp-addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0"}
	t.Cleanup(func() {
		n.kill()
		if t.Failed() {
			t.Logf("log of %s:\n%s", n.name, n.tail())
		}
		_ = folder.Remove()
	})
	return n
}

var listening = regexp.MustCompile(`url=(http://\S+)`)

// start runs the node and returns when it listens, which it does before its
// database answers.
func (n *node) start(t *testing.T) {
	t.Helper()
	cmd := exec.Command(n.binary, n.args...)
	cmd.Env = n.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	found := make(chan string, 1)
	go func() {
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			n.mu.Lock()
			n.log.WriteString(lines.Text() + "\n")
			n.mu.Unlock()
			if m := listening.FindStringSubmatch(lines.Text()); m != nil && strings.Contains(lines.Text(), "listening") {
				found <- m[1]
			}
		}
		close(found)
	}()
	select {
	case url := <-found:
		if url == "" {
			t.Fatalf("%s ended before it listened:\n%s", n.name, n.tail())
		}
		n.mu.Lock()
		n.url, n.cmd, n.began = url, cmd, time.Now()
		n.mu.Unlock()
	case <-time.After(time.Minute): // dozens may start at once on two cores
		t.Fatalf("%s does not listen after a minute:\n%s", n.name, n.tail())
	}
}

// waitReady returns when every mode of the node issues IDs.
func (n *node) waitReady(t *testing.T) {
	t.Helper()
	c := newClient()
	defer c.CloseIdleConnections()
	waitFor(t, 30*time.Second, "readiness", func() bool {
		resp, err := c.Get(n.address() + "/readyz")
		if err != nil {
			return false
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		return err == nil && resp.StatusCode == http.StatusOK && !strings.Contains(string(body), `"ready":false`)
	})
}

// kill ends the process as a crash would.
func (n *node) kill() { n.end(syscall.SIGKILL) }

// stop ends the process in an orderly way.
func (n *node) stop() { n.end(syscall.SIGTERM) }

func (n *node) end(sig syscall.Signal) {
	n.mu.Lock()
	cmd := n.cmd
	n.cmd = nil
	n.mu.Unlock()
	if cmd == nil {
		return
	}
	_ = cmd.Process.Signal(sig)
	_ = cmd.Wait()
}

func (n *node) tail() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	text := n.log.String()
	if cut := len(text) - 4000; cut > 0 {
		_, text, _ = strings.Cut(text[cut:], "\n")
	}
	return text
}

func (n *node) address() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.url
}

// cpu returns the processor time that the node has used.
func (n *node) cpu(t *testing.T) time.Duration {
	t.Helper()
	n.mu.Lock()
	pid := n.cmd.Process.Pid
	n.mu.Unlock()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Skipf("processor time needs /proc: %v", err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond // clock ticks are 100 Hz on Linux
}

// client keeps its connections, as an application does.
func newClient() *http.Client {
	return &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
}

// get asks for count IDs of a tag and returns the status and the IDs.
func get(ctx context.Context, c *http.Client, n *node, tag string, count int) (int, []int64, error) {
	target := n.address() + "/api/" + n.mode + "/get/" + tag
	if count > 1 {
		target += "?count=" + strconv.Itoa(count)
	}
	return fetch(ctx, c, target, count)
}

// fetch is get for a URL.
func fetch(ctx context.Context, c *http.Client, target string, count int) (int, []int64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return 0, nil, err
	}
	resp, err := c.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, nil, err // a reply that was cut off is not used, not even in part
	}
	if resp.StatusCode != http.StatusOK {
		return resp.StatusCode, nil, nil
	}
	ids := make([]int64, 0, count)
	for line := range strings.FieldsSeq(string(body)) {
		id, err := strconv.ParseInt(line, 10, 64)
		if err != nil {
			return 0, nil, err
		}
		ids = append(ids, id)
	}
	if len(ids) != count {
		return 0, nil, fmt.Errorf("%d IDs, asked for %d", len(ids), count)
	}
	return resp.StatusCode, ids, nil
}

// leaf runs a command beside the nodes and returns its output; after an error, also what it says
// on its standard error.
func leaf(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Env = append(os.Environ(),
		"LEAF_STORE_CONNECT_TIMEOUT=2s", // on a busy machine 250 ms may pass before a server answers
		"LEAF_DATA_DIR="+t.TempDir())    // the default one may be that of a node of this machine
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		out = append(out, said.Bytes()...)
	}
	return string(out), err
}

func mustLeaf(t *testing.T, args ...string) string {
	t.Helper()
	out, err := leaf(t, args...)
	if err != nil {
		t.Fatalf("leaf %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}
