package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// node is the process under test.
type node struct {
	cmd    *exec.Cmd
	url    string
	cgroup string // its own, "" without a quota
}

var listening = regexp.MustCompile(`listening.*url=(http://\S+)`)

// startNode prepares the database and the tags, starts the node and waits until it is
// ready.
func startNode(ctx context.Context, p plan, dir, store string) (*node, error) {
	if err := tool(ctx, p.leaf, "schema", "apply", "--store", store); err != nil {
		return nil, err
	}
	// Without it snowflake mode would wait in a new database for longer than a soak.
	if err := tool(ctx, p.leaf, "worker", "init", "--store", store); err != nil {
		return nil, err
	}
	for tag, step := range map[string]string{"orders": "1000", "users": "5000", "sevens": "7", "bulk": "1000000"} {
		if err := tool(ctx, p.leaf, "tag", "create", "--store", store, "--data-dir", dir+"-tool", "--step", step, tag); err != nil {
			return nil, err
		}
	}
	n := &node{}
	// Ctrl-C ends the loads; the node is stopped after them.
	n.cmd = exec.CommandContext(context.WithoutCancel(ctx), p.leaf, "serve", "--store", store, "--data-dir", dir, "--http-addr", "127.0.0.1:0", "--snowflake-address", "10.0.0.1:8080")
	n.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stderr, err := n.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := n.cmd.Start(); err != nil {
		return nil, err
	}
	if n.cgroup, err = limit(n.cmd.Process.Pid, p.quota); err != nil {
		n.kill()
		return nil, err
	}
	found := make(chan string, 1)
	var said []string // until it listens
	go func() {
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			said = append(said, lines.Text())
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				found <- m[1]
				said = nil
			}
			if strings.Contains(lines.Text(), "level=ERROR") || strings.Contains(lines.Text(), "level=WARN") {
				fmt.Fprintln(os.Stderr, lines.Text())
			}
		}
		close(found)
	}()
	if n.url = <-found; n.url == "" {
		n.kill()
		return nil, fmt.Errorf("the node ended before it listened:\n%s", strings.Join(said, "\n"))
	}
	if err := n.waitReady(ctx); err != nil {
		n.kill()
		return nil, err
	}
	return n, nil
}

// waitReady waits until a mode serves.
func (n *node) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the node is not ready: %w", ctx.Err())
		case <-tick.C:
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, n.url+"/readyz", nil)
		if err != nil {
			return err
		}
		if resp, err := http.DefaultClient.Do(req); err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
	}
}

func tool(ctx context.Context, name string, args ...string) error {
	if out, err := exec.CommandContext(ctx, name, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// stop ends the node in an orderly way.
func (n *node) stop() error {
	_ = n.cmd.Process.Signal(syscall.SIGTERM)
	err := n.cmd.Wait()
	n.cmd = nil
	n.removeCgroup()
	if err != nil {
		return fmt.Errorf("the node did not stop cleanly: %w", err)
	}
	return nil
}

func (n *node) kill() {
	if n.cmd != nil {
		_ = n.cmd.Process.Kill()
		_ = n.cmd.Wait()
		n.cmd = nil
	}
	n.removeCgroup()
}

func (n *node) removeCgroup() {
	if n.cgroup != "" {
		_ = os.Remove(n.cgroup)
	}
}

// period is that of the quota, short so that a throttled node waits for a few
// milliseconds at most.
const period = 10 * time.Millisecond

// limit puts a process into a control group of its own, whose quota nothing else on the
// machine can take away: the group has the largest share that there is.
func limit(pid int, processors float64) (folder string, err error) {
	if processors <= 0 {
		return "", nil
	}
	quota := strconv.Itoa(int(processors * float64(period.Microseconds())))
	each := strconv.FormatInt(period.Microseconds(), 10)
	name := fmt.Sprintf("leaf-soak-%d", pid)
	v1 := filepath.Join("/sys/fs/cgroup/cpu", name)
	if err := os.Mkdir(v1, 0o755); err == nil {
		return v1, errors.Join(set(v1, "cpu.shares", "262144"), set(v1, "cpu.cfs_period_us", each), set(v1, "cpu.cfs_quota_us", quota), set(v1, "cgroup.procs", strconv.Itoa(pid)))
	}
	v2 := filepath.Join("/sys/fs/cgroup", name)
	if err := os.Mkdir(v2, 0o755); err != nil {
		return "", fmt.Errorf("-quota needs a control group: %w", err)
	}
	return v2, errors.Join(set(v2, "cpu.weight", "10000"), set(v2, "cpu.max", quota+" "+each), set(v2, "cgroup.procs", strconv.Itoa(pid)))
}

func set(folder, file, value string) error {
	return os.WriteFile(filepath.Join(folder, file), []byte(value), 0o600)
}
