package side

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// startTimeout is how long a Daemon may take until it answers.
const startTimeout = 20 * time.Second

// Process is a running server.
type Process struct {
	Name string
	Addr string // host:port

	cmd  *exec.Cmd
	stop func() error
}

// Start runs a command that prints its host:port as its first line, and ends when its
// standard input does. The caller calls Stop; the end of ctx kills the process.
func Start(ctx context.Context, name string, command ...string) (*Process, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p := &Process{Name: name, cmd: cmd, stop: func() error { return errors.Join(stdin.Close(), cmd.Wait()) }}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s prints no address: %w", name, err), p.Stop())
	}
	p.Addr = strings.TrimSpace(line)
	return p, nil
}

// Daemon is a server that listens at an address it was told, and ends by SIGINT.
type Daemon struct {
	Name    string
	Addr    string // host:port
	Command []string
	Output  io.Writer // what it prints; nil: nowhere

	// Ready returns nil once the server answers. It is asked every 20 ms, for 20 s.
	Ready func(ctx context.Context) error
}

// Start runs the server and returns when it is ready. The caller calls Stop; the end of
// ctx kills the process.
func (d Daemon) Start(ctx context.Context) (*Process, error) {
	cmd := exec.CommandContext(ctx, d.Command[0], d.Command[1:]...)
	cmd.Stdout, cmd.Stderr = d.Output, d.Output
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", d.Name, err)
	}
	p := &Process{Name: d.Name, Addr: d.Addr, cmd: cmd}
	p.stop = func() error { return errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Wait()) }
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); ; <-tick.C {
		err := d.Ready(ctx)
		if err == nil {
			return p, nil
		}
		if ctx.Err() != nil || time.Since(began) > startTimeout {
			return nil, errors.Join(fmt.Errorf("%s at %s is not ready: %w", d.Name, d.Addr, err), p.Stop())
		}
	}
}

// Stop asks the process to end and waits for it. Its error includes a bad exit status.
func (p *Process) Stop() error { return p.stop() }
