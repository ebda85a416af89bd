package server

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// mariaDBPair replicates from the very first transaction, so that a new standby
// begins empty and needs no copy.
type mariaDBPair struct{ mariaDB }

func (mariaDBPair) name() string { return "mariadb-pair" }

// following are a standby's arguments. A primary does not get the second one: by
// the release of MariaDB, a server that crashed with it takes itself for a former
// primary and drops the end of its binlog.
var following = []string{"--read-only=1", "--rpl-semi-sync-slave-enabled=1"}

func (k mariaDBPair) command(ctx context.Context, dir string, port int, r role) (*exec.Cmd, error) {
	cmd, err := k.mariaDB.command(ctx, dir, port)
	if err != nil {
		return nil, err
	}
	cmd.Args = append(cmd.Args,
		"--server-id="+strconv.Itoa(port),
		"--log-bin="+filepath.Join(dir, "data", "binlog"), "--binlog-format=ROW", "--sync-binlog=1",
		"--log-slave-updates=1", "--gtid-strict-mode=1",
		"--relay-log="+filepath.Join(dir, "data", "relay"), "--relay-log-recovery=1",
		// Written to the binlog before it is answered and after the standby has it.
		"--rpl-semi-sync-master-wait-point=AFTER_SYNC",
		"--rpl-semi-sync-master-timeout=86400000", // milliseconds: it never commits alone by itself
		"--slave-net-timeout=5",                   // and a heartbeat twice as often
	)
	switch r {
	case leading:
		cmd.Args = append(cmd.Args, "--rpl-semi-sync-master-enabled=1")
	case standby:
		cmd.Args = append(cmd.Args, following...)
	case detached:
		cmd.Args = append(append(cmd.Args, following...), "--skip-slave-start=1")
	case alone:
	}
	return cmd, nil
}

func (mariaDBPair) installed(addr, _ string) Database { return mariaDBAs(url.User("root"), addr, "") }

func (mariaDBPair) admin(addr, password string) Database {
	return mariaDBAs(url.UserPassword("root", password), addr, "")
}

func (mariaDBPair) client(addr, password string) Database {
	return mariaDBAs(url.UserPassword("leaf", password), addr, "leaf")
}

func mariaDBAs(user *url.Userinfo, addr, name string) Database {
	return Database{&url.URL{Scheme: "mysql", User: user, Host: addr, Path: "/" + name}}
}

func (k mariaDBPair) setUp(ctx context.Context, addr, password string) error {
	if err := k.setPassword(ctx, addr, password); err != nil {
		return err
	}
	for _, statement := range []string{
		"CREATE DATABASE leaf",
		"CREATE USER leaf@'127.0.0.1' IDENTIFIED BY '" + password + "'",
		"GRANT ALL ON leaf.* TO leaf@'127.0.0.1'",
		"CREATE USER replica@'127.0.0.1' IDENTIFIED BY '" + password + "'",
		"GRANT REPLICATION SLAVE ON *.* TO replica@'127.0.0.1'",
	} {
		if err := k.admin(addr, password).exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// setPassword is a matter of each node: it does not replicate.
func (k mariaDBPair) setPassword(ctx context.Context, addr, password string) error {
	d := k.installed(addr, password)
	d.url.RawQuery = "sql_log_bin=0"
	if err := d.exec(ctx, "SET PASSWORD FOR root@'127.0.0.1' = PASSWORD('"+password+"')"); err != nil {
		return fmt.Errorf("set the password of root: %w", err)
	}
	return nil
}

func (k mariaDBPair) clone(ctx context.Context, dir, _, password string) error {
	return k.install(ctx, dir, password)
}

func (k mariaDBPair) follow(ctx context.Context, addr, from, password string) error {
	if err := k.setPassword(ctx, addr, password); err != nil {
		return err
	}
	return k.resume(ctx, k.admin(addr, password), from, password)
}

func (mariaDBPair) resume(ctx context.Context, admin Database, from, password string) error {
	host, port, err := net.SplitHostPort(from)
	if err != nil {
		return fmt.Errorf("address of the primary: %w", err)
	}
	for _, statement := range []string{
		"STOP SLAVE",
		"CHANGE MASTER TO MASTER_HOST='" + host + "', MASTER_PORT=" + port +
			", MASTER_USER='replica', MASTER_PASSWORD='" + password + "', MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1",
		"START SLAVE",
	} {
		if err := admin.exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

func (mariaDBPair) synchronous(ctx context.Context, admin Database, on bool) error {
	value := "0"
	if on {
		value = "1"
	}
	return admin.exec(ctx, "SET GLOBAL rpl_semi_sync_master_enabled="+value)
}

// attached asks the standby too: the primary goes on counting one that has died,
// until it is back, and one that receives but has stopped to execute. A standby
// that gave up receiving is told to try again.
func (k mariaDBPair) attached(ctx context.Context, primary, standby Database, waitedFor bool) error {
	status, err := primary.status(ctx, "Rpl_semi_sync_master_%")
	if err != nil {
		return err
	}
	if status["Rpl_semi_sync_master_clients"] == "0" {
		return errors.New("no standby is attached")
	}
	if waitedFor && status["Rpl_semi_sync_master_status"] != "ON" {
		return errors.New("the standby is not waited for")
	}
	slave, err := k.slaveStatus(ctx, standby)
	if err != nil {
		return err
	}
	if slave["Slave_IO_Running"] == "No" { // it gives up where it takes an error for a final one
		if err := standby.exec(ctx, "START SLAVE IO_THREAD"); err != nil {
			return err
		}
	}
	if slave["Slave_IO_Running"] != "Yes" || slave["Slave_SQL_Running"] != "Yes" {
		return fmt.Errorf("the standby receives: %s %s, executes: %s %s",
			slave["Slave_IO_Running"], slave["Last_IO_Error"], slave["Slave_SQL_Running"], slave["Last_SQL_Error"])
	}
	return nil
}

func (mariaDBPair) cut(ctx context.Context, admin Database) error {
	return admin.exec(ctx, "STOP SLAVE IO_THREAD")
}

// promote waits until what was received has been executed too.
func (k mariaDBPair) promote(ctx context.Context, admin Database) (position int64, err error) {
	err = until(ctx, func() error {
		status, err := k.slaveStatus(ctx, admin)
		if state := status["Slave_SQL_Running_State"]; err == nil && !strings.HasPrefix(state, "Slave has read all relay log") {
			err = fmt.Errorf("the standby has not executed all that it received: %s %s", state, status["Last_SQL_Error"])
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	for _, statement := range []string{"STOP SLAVE", "RESET SLAVE ALL"} {
		if err := admin.exec(ctx, statement); err != nil {
			return 0, err
		}
	}
	if position, err = k.position(ctx, admin); err != nil {
		return 0, err
	}
	return position, admin.exec(ctx, "SET GLOBAL read_only=0")
}

func (mariaDBPair) slaveStatus(ctx context.Context, admin Database) (map[string]string, error) {
	pool, err := admin.pool()
	if err != nil {
		return nil, err
	}
	defer pool.Close()
	all, err := byColumn(ctx, pool, "SHOW SLAVE STATUS")
	switch {
	case err != nil:
		return nil, err
	case len(all) == 0:
		return nil, errors.New("it is no standby")
	}
	return all[0], nil
}

// position is the last part of a global transaction ID such as 0-20001-17.
func (mariaDBPair) position(ctx context.Context, admin Database) (int64, error) {
	var gtid string
	if err := admin.scan(ctx, "SELECT @@GLOBAL.gtid_binlog_pos", &gtid); err != nil {
		return 0, err
	}
	number, err := strconv.ParseInt(gtid[strings.LastIndexByte(gtid, '-')+1:], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("position %q is no transaction ID: %w", gtid, err)
	}
	return number, nil
}
