package server

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// startTimeout bounds one start; a cold, busy machine takes seconds.
	startTimeout = 60 * time.Second
	// stopTimeout is how long an orderly end may take before it becomes a kill.
	stopTimeout = 20 * time.Second
	pollEvery   = 5 * time.Millisecond
)

// daemon is one server that runs, is frozen, or is down, and its folder with the
// log. Its caller sees to it that the methods run one after the other.
type daemon struct {
	dir        string
	stopSignal syscall.Signal // asks for an orderly end without waiting for sessions

	process *process // nil when it does not run
	frozen  bool
}

// launch starts cmd, which is not bound to any context: the server outlives its
// start.
func (d *daemon) launch(cmd *exec.Cmd) error {
	output, err := os.OpenFile(d.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer output.Close() // the child has its own copy
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = d.dir, childEnvironment(), output, output
	d.process, err = startProcess(cmd)
	return err
}

// await asks until the server answers. One that has ended, or does not answer
// until ctx is done, is killed, and the error shows the end of its log.
func (d *daemon) await(ctx context.Context, ask func(context.Context) error) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-d.process.done:
			err = fmt.Errorf("it ended at once: %s", d.process.cmd.ProcessState)
		case <-ctx.Done():
			err = fmt.Errorf("no answer before the deadline: %w", err)
		case <-tick.C:
			continue
		}
		d.kill()
		return fmt.Errorf("%w\n%s", err, d.logTail())
	}
}

func (d *daemon) kill() {
	if d.process != nil {
		d.process.kill()
		d.process, d.frozen = nil, false
	}
}

func (d *daemon) stop() {
	if d.process == nil {
		return
	}
	d.thaw()
	d.process.signal(d.stopSignal)
	select {
	case <-d.process.done:
		d.process = nil
	case <-time.After(stopTimeout):
		d.kill()
	}
}

func (d *daemon) freeze() {
	if d.process != nil {
		d.process.freeze()
		d.frozen = true
	}
}

func (d *daemon) thaw() {
	if d.frozen {
		d.process.thaw()
		d.frozen = false
	}
}

func (d *daemon) log() string { return filepath.Join(d.dir, "server.log") }

func (d *daemon) logTail() []byte {
	const enough = 4000
	text, err := os.ReadFile(d.log())
	if err != nil {
		return []byte(err.Error())
	}
	return text[max(0, len(text)-enough):]
}

// runTool runs an installer; what it says is in the error only.
func runTool(cmd *exec.Cmd, dir string) error {
	cmd.Dir, cmd.Env = dir, childEnvironment()
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, output)
	}
	return nil
}

// childEnvironment holds nothing that would change a server's defaults, such as
// PGDATA, MYSQL_HOME, JAVA_TOOL_OPTIONS or ETCD_NAME.
func childEnvironment() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TZ=UTC"}
}
