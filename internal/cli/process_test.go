package cli_test

import (
	"bytes"
	"errors"
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

	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/internal/server/servertest"
)

// process is a leaf program of its own.
type process struct {
	cmd  *exec.Cmd
	dir  string
	addr string
	log  *syncBuffer
	done chan error
}

type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// dataDir is a new data directory with a short path.
func dataDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "leaf") //nolint:usetesting // the name of a test makes the path too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// serve starts leaf serve on a free port and waits until it answers.
func serve(t *testing.T, dir string, args ...string) *process {
	t.Helper()
	return serveAs(t, dir, append([]string{"leaf", "serve", "--data-dir", dir, "--http-addr", "127.0.0.1:0"}, args...)...)
}

// serveAs is serve with a whole command, which becomes the node.
func serveAs(t *testing.T, dir string, command ...string) *process {
	t.Helper()
	p := launch(t, dir, command...)
	info, err := waitForNode(dir)
	if err != nil {
		t.Fatalf("%v; log:\n%s", err, p.log)
	}
	if info.PID != p.cmd.Process.Pid {
		t.Fatalf("process %d answers, want %d", info.PID, p.cmd.Process.Pid)
	}
	p.addr = info.HTTP
	return p
}

// launch starts a command that becomes a node, and does not wait until it answers.
func launch(t *testing.T, dir string, command ...string) *process {
	t.Helper()
	p := &process{dir: dir, log: &syncBuffer{}, done: make(chan error, 1)}
	p.cmd = exec.Command(command[0], command[1:]...)
	p.cmd.Env = append(os.Environ(), "GORACE="+noExitSleep, patient)
	p.cmd.Stderr = p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { p.done <- p.cmd.Wait() }()
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	return p
}

// end sends a signal and waits for the end of the process.
func (p *process) end(t *testing.T, sig syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-p.done:
		if sig == syscall.SIGTERM && err != nil {
			t.Errorf("end: %v; log:\n%s", err, p.log)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("the process did not end; log:\n%s", p.log)
	}
}

// await waits until the log holds a text.
func (p *process) await(t *testing.T, text string) {
	t.Helper()
	p.awaitTimes(t, text, 1)
}

// awaitTimes waits until the log holds a text so many times.
func (p *process) awaitTimes(t *testing.T, text string, times int) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(20 * time.Second); strings.Count(p.log.String(), text) < times; <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("%q is not %d times in the log:\n%s", text, times, p.log)
		}
	}
}

// hangup sends SIGHUP, and waits until the log holds a text once more.
func (p *process) hangup(t *testing.T, text string) {
	t.Helper()
	before := strings.Count(p.log.String(), text)
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.awaitTimes(t, text, before+1)
}

// standsStill calls f while the process answers nothing.
func (p *process) standsStill(t *testing.T, f func()) {
	t.Helper()
	err := p.cmd.Process.Signal(syscall.SIGSTOP)
	if err == nil {
		f()
		err = p.cmd.Process.Signal(syscall.SIGCONT)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// ids takes n IDs of the demo tag over HTTP. On a busy machine a range, or the limits, come too late for one request.
func (p *process) ids(t *testing.T, n int) []int64 {
	t.Helper()
	status, body, err := 0, "", error(nil)
	for range 10 {
		status, body, err = httpGet(p.addr, "/api/segment/get/leaf-segment-test?count="+strconv.Itoa(n))
		if status != 503 || !strings.Contains(body, "arrived in time") && !strings.Contains(body, "could not be read from the database yet") {
			break
		}
	}
	if err != nil || status != 200 {
		t.Fatalf("got %d %s, %v; log:\n%s", status, body, err, p.log)
	}
	return idsIn(t, body)
}

// idsIn reads a reply with one ID a line.
func idsIn(t *testing.T, body string) (ids []int64) {
	t.Helper()
	for line := range strings.Lines(body) {
		id, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// distinct fails the test if an ID was seen before.
type distinct map[int64]bool

func (d distinct) add(t *testing.T, ids []int64) {
	t.Helper()
	for _, id := range ids {
		if d[id] {
			t.Fatalf("ID %d was issued twice", id)
		}
		d[id] = true
	}
}

// printedIDs are those that leaf next has printed.
func printedIDs(t *testing.T, text string) (ids []int64) {
	t.Helper()
	for word := range strings.FieldsSeq(text) {
		id, err := strconv.ParseInt(word, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

func TestIDsGoOnAfterStopAndKill(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	seen := distinct{}
	p := serve(t, dir)
	first := append(p.ids(t, 1), p.ids(t, 1)...)
	if first[0] != 1 || first[1] != 2 {
		t.Errorf("first IDs: got %v, want 1 and 2", first)
	}
	seen.add(t, first)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL, syscall.SIGKILL, syscall.SIGTERM} {
		p.end(t, sig)
		p = serve(t, dir)
		seen.add(t, p.ids(t, 2500)) // more than a range
		seen.add(t, p.ids(t, 1))
	}
	p.end(t, syscall.SIGTERM)
}

func TestSecondProcessOnOneDataDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	p := serve(t, dir)
	out, err := exec.CommandContext(t.Context(), "leaf", "serve", "--data-dir", dir, "--http-addr", "127.0.0.1:0").CombinedOutput()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || exit.ExitCode() != 4 {
		t.Errorf("got %v, want exit code 4", err)
	}
	for _, want := range []string{dir, "process " + strconv.Itoa(p.cmd.Process.Pid), "A second node repeats IDs unless it has a --data-dir of its own, the same --store as the first one (--store " + strconv.Quote("sqlite:"+filepath.Join(dir, "leaf.db")) + " if that has none)"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("got %q, want it to contain %q", out, want)
		}
	}
	if lines := strings.Count(string(out), "\n"); lines != 1 {
		t.Errorf("got %d lines, want 1: %s", lines, out)
	}
	p.ids(t, 1) // and the first one goes on
}

// TestServiceManagerTriesAgainBesideACommand: a node crashed, an administrator types a command that takes its time on the
// node's data directory, and the service manager starts the node meanwhile. The unit must start it once more: the command ends.
func TestServiceManagerTriesAgainBesideACommand(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	command, err := datadir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "leaf", "serve", "--data-dir", dir, "--http-addr", "127.0.0.1:0").CombinedOutput()
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok || !strings.Contains(string(out), "is in use by process") {
		t.Fatalf("got %v, want a refusal: %s", err, out)
	}
	unit, err := os.ReadFile(filepath.FromSlash("../../deploy/systemd/leaf.service"))
	if err != nil {
		t.Fatal(err)
	}
	_, never, ok := strings.Cut(string(unit), "\nRestartPreventExitStatus=")
	if !ok {
		t.Fatal("the unit has no RestartPreventExitStatus=")
	}
	never, _, _ = strings.Cut(never, "\n")
	if slices.Contains(strings.Fields(never), strconv.Itoa(exit.ExitCode())) {
		t.Errorf("the exit code is %d, and after %s systemd never starts the node again: %s", exit.ExitCode(), never, out)
	}
	if err := command.Close(); err != nil {
		t.Fatal(err)
	}
	serve(t, dir).ids(t, 1)
}

func TestTwoProcessesShareOneSQLiteFile(t *testing.T) {
	t.Parallel()
	const clients, rounds = 4, 20
	first := dataDir(t)
	a := serve(t, first)
	b := serve(t, dataDir(t), "--store", "sqlite:"+filepath.Join(first, "leaf.db"))
	var mu sync.Mutex
	seen := distinct{}
	var wg sync.WaitGroup
	for _, p := range []*process{a, b} {
		for range clients {
			wg.Go(func() {
				for range rounds {
					ids := p.ids(t, 700)
					mu.Lock()
					seen.add(t, ids)
					mu.Unlock()
				}
			})
		}
	}
	wg.Wait()
	if got, want := len(seen), 2*clients*rounds*700; got != want {
		t.Errorf("got %d IDs, want %d", got, want)
	}
	a.end(t, syscall.SIGTERM)
	seen.add(t, b.ids(t, 5000))
	b.end(t, syscall.SIGTERM)
}

// TestHangupReloads sends SIGHUP: the node goes on, and its tokens are those of the file.
func TestHangupReloads(t *testing.T) {
	t.Parallel()
	dir := dataDir(t)
	tokens := filepath.Join(t.TempDir(), "tokens")
	write := func(text string) {
		if err := os.WriteFile(tokens, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("old\n")
	p := serve(t, dir, "--auth-token-file", tokens, "--reload-interval", "0s")
	status := func(token string) int { return servertest.StatusWith(t, p.addr, "leaf-segment-test", token) }
	write("")
	p.hangup(t, "the configuration is not reloaded")
	if got := status("old"); got != 200 {
		t.Errorf("an empty file took the token away: %d", got)
	}
	write("new\nnewer\n")
	p.hangup(t, "configuration reloaded")
	if old, next := status("old"), status("newer"); old != 401 || next != 200 {
		t.Errorf("old token %d, new one %d, want 401 and 200", old, next)
	}
	p.end(t, syscall.SIGTERM)
}

// TestNodeOutlivesTheReaderOfItsLog: the program that reads the log from a pipe has ended. The
// node loses its log, and nothing else.
func TestNodeOutlivesTheReaderOfItsLog(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer write.Close()
	if err := read.Close(); err != nil {
		t.Fatal(err)
	}
	servesWith(t, write)
}

// TestNodeWhoseLogIsNotRead: the pipe of the log is full, and the program that should read it
// does not, or the terminal is stopped. The node serves and stops all the same.
func TestNodeWhoseLogIsNotRead(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	if err := write.SetWriteDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = write.Write(make([]byte, 4096))
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal(err)
	}
	servesWith(t, write)
}

// servesWith starts a node that logs to stderr, takes IDs, and stops it.
func servesWith(t *testing.T, stderr *os.File) {
	t.Helper()
	p := &process{dir: dataDir(t), log: &syncBuffer{}, done: make(chan error, 1)}
	p.cmd = exec.Command("leaf", "serve", "--data-dir", p.dir, "--http-addr", "127.0.0.1:0")
	p.cmd.Stderr = stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	go func() { p.done <- p.cmd.Wait() }()
	answers := make(chan string, 1)
	go func() {
		info, _ := waitForNode(p.dir) // without an answer ids fails
		answers <- info.HTTP
	}()
	select {
	case err := <-p.done:
		t.Fatalf("the node has ended: %v", err)
	case p.addr = <-answers:
	}
	p.ids(t, 3)
	p.end(t, syscall.SIGTERM)
}
