package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// grace is how long the command may take to end after the first signal.
const grace = 10 * time.Second

// command is what runs beside the servers.
type command struct {
	args, env      []string
	stdout, stderr io.Writer
}

// run runs the command in a process group of its own and returns its exit code.
// A signal then reaches each of its processes once, whether it came from the
// terminal or by "kill" to us alone; "go test" does not pass a SIGTERM on to the
// test binaries that it has started.
func (c command) run(signals <-chan syscall.Signal) int {
	cmd := exec.Command(c.args[0], c.args[1:]...) //nolint:noctx // ended by signals, below
	cmd.Env, cmd.Stdout, cmd.Stderr = c.env, c.stdout, c.stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		fmt.Fprintf(c.stderr, "withservers: %v\n", err)
		return 1
	}
	group := -cmd.Process.Pid
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // the state says more
		close(ended)
	}()

	var patience <-chan time.Time // from the first signal on
	for {
		select {
		case <-ended:
			if patience != nil {
				settle(group)
			}
			_ = syscall.Kill(group, syscall.SIGKILL) // what it left behind
			return exitCode(cmd.ProcessState)
		case s := <-signals:
			if patience != nil {
				s = syscall.SIGKILL
			}
			patience = time.After(grace)
			_ = syscall.Kill(group, s)
		case <-patience:
			fmt.Fprintf(c.stderr, "withservers: still running %v after the signal, killed\n", grace)
			_ = syscall.Kill(group, syscall.SIGKILL)
		}
	}
}

// settle lets what a signal has also reached end by itself, for a short time: a
// shell dies before the last program of its pipeline has reported.
func settle(group int) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 50 {
		if syscall.Kill(group, 0) != nil {
			return
		}
		<-tick.C
	}
}

func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}
