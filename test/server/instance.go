package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

const (
	// startTimeout bounds one start; a cold, busy machine takes seconds.
	startTimeout = 60 * time.Second
	// stopTimeout is how long an orderly end may take before it becomes a kill.
	stopTimeout = 20 * time.Second
	pollEvery   = 5 * time.Millisecond
)

// Instance is a server that this process started, and the database "leaf" on
// it. Its methods are safe for concurrent use and run one after the other.
type Instance struct {
	Database

	engine engine
	folder *Folder
	port   int

	mu      sync.Mutex
	process *process // nil when it does not run
	frozen  bool
	closed  bool
}

// StartMariaDB starts a MariaDB server with a new data folder below parent, or
// in the system's temporary folder if that is empty. It returns when the server
// answers queries; ctx bounds the start only. The caller calls Close. The error
// is ErrMissing if the server is not installed.
func StartMariaDB(ctx context.Context, parent string) (*Instance, error) {
	return start(ctx, mariaDB{}, parent)
}

// StartPostgres is StartMariaDB for PostgreSQL. For root the server runs as the
// user postgres, who must be able to enter parent.
func StartPostgres(ctx context.Context, parent string) (*Instance, error) {
	return start(ctx, postgres{}, parent)
}

func start(ctx context.Context, e engine, parent string) (_ *Instance, err error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	dir, err := NewFolder(parent, e.name())
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", e.name(), err)
	}
	i := &Instance{engine: e, folder: dir}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start %s: %w", e.name(), err), i.Close())
		}
	}()
	password := rand.Text()
	if err := e.install(ctx, dir.path, password); err != nil {
		return nil, err
	}
	if i.port, err = freePort(ctx); err != nil {
		return nil, err
	}
	i.Database = e.first(i.port, password)
	if err := i.run(ctx); err != nil {
		return nil, err
	}
	if err := e.setUp(ctx, i.Database, password); err != nil {
		return nil, err
	}
	i.Database = e.later(i.port, password)
	return i, nil
}

// Restart starts the server again, on the same port and data folder, after Kill
// or Stop, and returns as soon as it answers queries. One that still runs is
// stopped first.
func (i *Instance) Restart(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return fmt.Errorf("restart %s: it is closed", i.engine.name())
	}
	i.stopLocked()
	if err := i.run(ctx); err != nil {
		return fmt.Errorf("restart %s: %w", i.engine.name(), err)
	}
	return nil
}

// Kill ends the server with SIGKILL, as a crash would, and returns when it is
// gone.
func (i *Instance) Kill() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.killLocked()
}

// Stop ends the server in an orderly way, without waiting for its sessions, and
// returns when it is gone.
func (i *Instance) Stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.stopLocked()
}

// Pause freezes the server with SIGSTOP: its connections stay open, and nothing
// answers.
func (i *Instance) Pause() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.process != nil {
		i.process.freeze()
		i.frozen = true
	}
}

// Continue ends a Pause.
func (i *Instance) Continue() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.thawLocked()
}

// Close stops the server and removes its data folder. It is idempotent.
func (i *Instance) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil
	}
	i.closed = true
	i.stopLocked()
	return i.folder.Remove()
}

func (i *Instance) killLocked() {
	if i.process == nil {
		return
	}
	i.process.kill()
	i.process, i.frozen = nil, false
}

func (i *Instance) stopLocked() {
	if i.process == nil {
		return
	}
	i.thawLocked()
	i.process.signal(i.engine.stopSignal())
	select {
	case <-i.process.done:
		i.process = nil
	case <-time.After(stopTimeout):
		i.killLocked()
	}
}

func (i *Instance) thawLocked() {
	if i.frozen {
		i.process.thaw()
		i.frozen = false
	}
}

// run starts the server and waits for its first answer.
func (i *Instance) run(ctx context.Context) error {
	// The server outlives ctx, which bounds its start.
	cmd, err := i.engine.command(context.WithoutCancel(ctx), i.folder.path, i.port)
	if err != nil {
		return err
	}
	output, err := openLog(i.folder.path)
	if err != nil {
		return err
	}
	defer output.Close() // the child has its own copy
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = i.folder.path, childEnvironment(), output, output
	p, err := startProcess(cmd)
	if err != nil {
		return err
	}
	i.process = p
	if err := i.ready(ctx); err != nil {
		i.killLocked()
		return fmt.Errorf("%w\n%s", err, logTail(i.folder.path))
	}
	return nil
}

// ready polls the server until it answers, has ended, or ctx is done.
func (i *Instance) ready(ctx context.Context) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		_, err := i.Version(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-i.process.done:
			return fmt.Errorf("it ended at once: %s", i.process.cmd.ProcessState)
		case <-ctx.Done():
			return fmt.Errorf("no answer before the deadline: %w", err)
		case <-tick.C:
		}
	}
}

// runTool runs an installer; what it says is in the error only.
func runTool(cmd *exec.Cmd, dir string) error {
	cmd.Dir, cmd.Env = dir, childEnvironment()
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", filepath.Base(cmd.Path), err, output)
	}
	return nil
}

func openLog(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

func logTail(dir string) []byte {
	const enough = 4000
	text, err := os.ReadFile(filepath.Join(dir, "server.log"))
	if err != nil {
		return []byte(err.Error())
	}
	return text[max(0, len(text)-enough):]
}
