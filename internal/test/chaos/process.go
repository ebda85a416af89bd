package chaos

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

// process is a running program.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended and was reaped
}

// launch starts a program whose output goes to the end of the file log. The kernel
// kills it when the thread that started it ends; so a goroutine that is locked to
// its thread starts it and stays until it has ended.
func launch(binary string, args, env []string, log string) (*process, error) {
	output, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer output.Close() // the child has its own copy
	cmd := exec.CommandContext(context.Background(), binary, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in its log
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", binary, err)
	}
	return p, nil
}

// signal sends sig; a process that has ended is left alone.
func (p *process) signal(sig syscall.Signal) { _ = p.cmd.Process.Signal(sig) }

// ended reports whether the process has ended.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}
