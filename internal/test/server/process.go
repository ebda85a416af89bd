package server

import (
	"fmt"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// process is a running child.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the child has ended and was reaped
}

// startProcess starts cmd in a process group of its own, so that a Ctrl-C at the
// terminal reaches us and not the server under our feet.
//
// On Linux the kernel kills the child when its parent ends. "Parent" means the
// thread that forked it, and Go may end a thread at any time; so the child is
// started by a goroutine that is locked to its thread and stays until the child
// has ended.
func startProcess(cmd *exec.Cmd) (*process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid = true
	dieWithParent(cmd.SysProcAttr)

	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait() // how it ended is in cmd.ProcessState
			close(p.done)
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	return p, nil
}

// signal sends sig to the child itself; one that has ended is left alone.
func (p *process) signal(sig syscall.Signal) { _ = p.cmd.Process.Signal(sig) }

// freeze stops the child and then its children: in this order it can start no
// further ones in between. It returns the children.
func (p *process) freeze() (frozen []int) {
	pid := p.cmd.Process.Pid
	p.signal(syscall.SIGSTOP)
	poll(func() bool { return stopped(pid) })
	frozen = children(pid)
	for _, c := range frozen {
		_ = syscall.Kill(c, syscall.SIGSTOP)
	}
	return frozen
}

func (p *process) thaw() {
	for _, pid := range children(p.cmd.Process.Pid) {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	p.signal(syscall.SIGCONT)
}

// kill ends the child and its children at once, and returns when they are gone.
// The children of PostgreSQL have sessions of their own, so that a signal to the
// process group would miss them; one that runs a statement would finish it
// first, and one that lives on forbids the restart.
func (p *process) kill() {
	orphans := p.freeze()
	p.signal(syscall.SIGKILL)
	for _, pid := range orphans {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	<-p.done
	for _, pid := range orphans {
		poll(func() bool { return gone(pid) })
	}
}

// poll waits until ok, at most a second: what it waits for takes the kernel
// microseconds.
func poll(ok func() bool) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range 1000 {
		if ok() {
			return
		}
		<-tick.C
	}
}
