package server

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

type mariaDB struct{}

func (mariaDB) name() string     { return "mariadb" }
func (mariaDB) variable() string { return "LEAF_TEST_MYSQL" }

func (mariaDB) install(ctx context.Context, dir, _ string) error {
	binary, err := find("mariadbd", "mariadb-server")
	if err != nil {
		return err // the client's package has the tool too
	}
	tool, err := find("mariadb-install-db", "mariadb-server")
	if err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o700); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, tool, append(mariaDBArgs(binary, dir),
		"--auth-root-authentication-method=normal", "--skip-test-db")...)
	return runTool(cmd, dir)
}

func (mariaDB) command(ctx context.Context, dir string, port int) (*exec.Cmd, error) {
	binary, err := find("mariadbd", "mariadb-server")
	if err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, binary, append(mariaDBArgs(binary, dir),
		"--socket=server.sock", // inside the data folder: a path longer than 107 bytes is refused
		"--pid-file="+filepath.Join(dir, "server.pid"),
		"--bind-address=127.0.0.1", "--port="+strconv.Itoa(port),
		"--skip-name-resolve",
		"--character-set-server=utf8mb4", "--collation-server=utf8mb4_general_ci", // the defaults of MySQL 8, nearly
		"--max-connections=1000",
		"--innodb-flush-log-at-trx-commit=1",
		"--innodb-buffer-pool-size=32M", "--performance-schema=OFF",
	)...), nil
}

// mariaDBArgs are common to the server and its installer, which otherwise runs a server
// that lies in the system's folder. The temporary folder
// is its own, because a server that starts deletes all temporary tables that it
// finds in there, those of its running neighbours too.
func mariaDBArgs(binary, dir string) []string {
	args := []string{
		"--no-defaults", "--basedir=" + filepath.Dir(filepath.Dir(binary)),
		"--datadir=" + filepath.Join(dir, "data"), "--tmpdir=" + filepath.Join(dir, "tmp"),
		"--innodb-log-file-size=16M",
	}
	if os.Geteuid() == 0 {
		args = append(args, "--user=root") // it refuses to run as root unless told to
	}
	return args
}

func (mariaDB) first(port int, _ string) Database {
	return Database{&url.URL{Scheme: "mysql", User: url.User("root"), Host: address(port), Path: "/"}}
}

func (mariaDB) later(port int, password string) Database {
	return Database{&url.URL{Scheme: "mysql", User: url.UserPassword("root", password), Host: address(port), Path: "/leaf"}}
}

func (mariaDB) setUp(ctx context.Context, d Database, password string) error {
	if err := d.exec(ctx, "CREATE DATABASE leaf"); err != nil {
		return err
	}
	if err := d.exec(ctx, "SET PASSWORD FOR 'root'@'127.0.0.1' = PASSWORD('"+password+"')"); err != nil {
		return fmt.Errorf("set the password of root: %w", err)
	}
	return nil
}

func (mariaDB) stopSignal() syscall.Signal { return syscall.SIGTERM }
