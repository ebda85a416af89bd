package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// postgresPair keeps the settings that change with the roles in the data folder,
// by ALTER SYSTEM: what the command line says could not be changed later.
type postgresPair struct{ postgres }

func (postgresPair) name() string { return "postgres-pair" }

func (k postgresPair) command(ctx context.Context, dir string, port int, _ role) (*exec.Cmd, error) {
	cmd, err := k.postgres.command(ctx, dir, port)
	if err != nil {
		return nil, err
	}
	cmd.Args = append(cmd.Args,
		"-c", "wal_keep_size=512MB", // for a standby that was away
		"-c", "wal_retrieve_retry_interval=500ms", // how soon a standby tries again
		"-c", "autovacuum=off", // its transactions would be counted as lost
	)
	return cmd, nil
}

func (postgresPair) installed(addr, password string) Database {
	return postgresAt(addr, password, "postgres")
}

func (postgresPair) admin(addr, password string) Database {
	return postgresAt(addr, password, "postgres")
}

func (postgresPair) client(addr, password string) Database { return postgresAt(addr, password, "leaf") }

func postgresAt(addr, password, name string) Database {
	return postgres{}.later(0, password).Via(addr).Named(name)
}

func (k postgresPair) setUp(ctx context.Context, addr, password string) error {
	return k.postgres.setUp(ctx, k.admin(addr, password), password)
}

// clone copies the primary, and then makes the copy's settings a standby's.
func (k postgresPair) clone(ctx context.Context, dir, from, password string) error {
	server, err := find("postgres", "postgresql")
	if err != nil {
		return err
	}
	credential, err := postgresUser()
	if err != nil {
		return err
	}
	if err := chown(credential, dir); err != nil {
		return err
	}
	data := filepath.Join(dir, "data")
	cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(server), "pg_basebackup"),
		"-D", data, "-d", k.conninfo(from, password), "-X", "stream", "-c", "fast", "--no-sync")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	if err := runTool(cmd, dir); err != nil {
		return err
	}
	signal, settings := filepath.Join(data, "standby.signal"), filepath.Join(data, "postgresql.auto.conf")
	if err := errors.Join(
		os.WriteFile(signal, nil, 0o600),
		os.WriteFile(settings, []byte("primary_conninfo = '"+k.conninfo(from, password)+"'\n"), 0o600),
	); err != nil {
		return err
	}
	return chown(credential, signal, settings)
}

func (postgresPair) conninfo(addr, password string) string {
	host, port, _ := net.SplitHostPort(addr)
	return fmt.Sprintf("host=%s port=%s user=postgres password=%s sslmode=disable application_name=standby", host, port, password)
}

// follow has nothing to do: the copy's settings say whom it follows.
func (postgresPair) follow(context.Context, string, string, string) error { return nil }

func (k postgresPair) resume(ctx context.Context, admin Database, from, password string) error {
	return k.set(ctx, admin, "primary_conninfo", k.conninfo(from, password))
}

func (k postgresPair) cut(ctx context.Context, admin Database) error {
	if err := k.set(ctx, admin, "primary_conninfo", ""); err != nil {
		return err
	}
	return until(ctx, func() error {
		var receivers int
		err := admin.scan(ctx, "SELECT COUNT(*) FROM pg_stat_wal_receiver", &receivers)
		if err == nil && receivers != 0 {
			err = errors.New("the standby still receives")
		}
		return err
	})
}

func (k postgresPair) synchronous(ctx context.Context, admin Database, on bool) error {
	names := ""
	if on {
		names = "*"
	}
	return k.set(ctx, admin, "synchronous_standby_names", names)
}

func (postgresPair) set(ctx context.Context, admin Database, setting, value string) error {
	if err := admin.exec(ctx, "ALTER SYSTEM SET "+setting+" = '"+value+"'"); err != nil {
		return err
	}
	return admin.exec(ctx, "SELECT pg_reload_conf()")
}

func (postgresPair) attached(ctx context.Context, primary, _ Database, waitedFor bool) error {
	var state, sync string
	err := primary.scan(ctx, `SELECT COALESCE(MAX(state), 'none'), COALESCE(MAX(sync_state), 'none')
		FROM pg_stat_replication WHERE application_name = 'standby'`, &state, &sync)
	if err == nil && (state != "streaming" || waitedFor && sync != "sync") {
		err = fmt.Errorf("the standby is %s and %s", state, sync)
	}
	return err
}

// promote waits until the standby has replayed all that it received, and then makes it the
// primary. Only after the replay does the position say how far the standby followed.
// Clients can write as soon as promote returns.
func (k postgresPair) promote(ctx context.Context, admin Database) (position int64, err error) {
	err = until(ctx, func() error {
		var done bool
		err := admin.scan(ctx, "SELECT COALESCE(pg_last_wal_replay_lsn() >= pg_last_wal_receive_lsn(), true)", &done)
		if err == nil && !done {
			err = errors.New("the standby has not replayed all that it received")
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	if position, err = k.position(ctx, admin); err != nil {
		return 0, err
	}
	var promoted bool
	if err := admin.scan(ctx, "SELECT pg_promote()", &promoted); err != nil {
		return 0, err
	}
	if !promoted {
		return 0, errors.New("pg_promote gave up")
	}
	return position, nil
}

// position is the next transaction ID; it works on a standby too.
func (postgresPair) position(ctx context.Context, admin Database) (next int64, err error) {
	err = admin.scan(ctx, "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint", &next)
	return next, err
}
