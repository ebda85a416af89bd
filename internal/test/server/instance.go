package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	"github.com/leaf-idgen/leaf/internal/test/port"
)

// Instance is a server that this process started, and the database "leaf" on
// it. Its methods are safe for concurrent use and run one after the other.
type Instance struct {
	Database

	engine engine
	folder *Folder
	port   *port.Port

	mu     sync.Mutex
	daemon daemon
	closed bool
}

// StartMariaDB starts a MariaDB server with a new data folder below parent, or
// in the system's temporary folder if that is empty. It returns when the server
// answers queries; ctx bounds the start only. The caller calls Close. The error
// is ErrMissing if the server is not installed.
func StartMariaDB(ctx context.Context, parent string) (*Instance, error) {
	return start(ctx, mariaDB{}, parent)
}

// StartMySQL is StartMariaDB for MySQL. Debian's releases have no MySQL, so the error is
// often ErrMissing; test/newest fetches it.
func StartMySQL(ctx context.Context, parent string) (*Instance, error) {
	return start(ctx, mySQL{}, parent)
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
	i := &Instance{engine: e, folder: dir, daemon: daemon{dir: dir.path, stopSignal: e.stopSignal()}}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start %s: %w", e.name(), err), i.Close())
		}
	}()
	password := rand.Text()
	if err := e.install(ctx, dir.path, password); err != nil {
		return nil, err
	}
	if i.port, err = port.Claim(ctx); err != nil {
		return nil, err
	}
	i.Database = e.first(i.port.Number, password)
	if err := i.run(ctx); err != nil {
		return nil, err
	}
	if err := e.setUp(ctx, i.Database, password); err != nil {
		return nil, err
	}
	i.Database = e.later(i.port.Number, password)
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
	i.daemon.stop()
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
	i.daemon.kill()
}

// Stop ends the server in an orderly way, without waiting for its sessions, and
// returns when it is gone.
func (i *Instance) Stop() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.daemon.stop()
}

// Pause freezes the server with SIGSTOP: its connections stay open, and nothing
// answers.
func (i *Instance) Pause() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.daemon.freeze()
}

// Continue ends a Pause.
func (i *Instance) Continue() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.daemon.thaw()
}

// Close stops the server and removes its data folder. It is idempotent.
func (i *Instance) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil
	}
	i.closed = true
	i.daemon.stop()
	i.port.Release()
	return i.folder.Remove()
}

// run starts the server and waits for its first answer.
func (i *Instance) run(ctx context.Context) error {
	cmd, err := i.engine.command(context.WithoutCancel(ctx), i.folder.path, i.port.Number)
	if err != nil {
		return err
	}
	if err := i.daemon.launch(cmd); err != nil {
		return err
	}
	return i.daemon.await(ctx, func(ctx context.Context) error {
		_, err := i.Version(ctx)
		return err
	})
}
