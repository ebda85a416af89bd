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

// mySQL is MySQL itself, of which Debian's releases have none: test/newest has it.
type mySQL struct{}

func (mySQL) name() string     { return "mysql" }
func (mySQL) variable() string { return "LEAF_TEST_MYSQL_NEWEST" }

// findMySQL finds mysqld. MariaDB has a link of that name.
func findMySQL() (string, error) {
	binary, err := find("mysqld", "mysql-server")
	if err != nil || filepath.Base(binary) != "mysqld" {
		return "", fmt.Errorf("mysqld of MySQL: %w: run the tests by bin/withservers, which fetches it", ErrMissing)
	}
	return binary, nil
}

func (m mySQL) install(ctx context.Context, dir, password string) error {
	binary, err := findMySQL()
	if err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, "tmp"), 0o700); err != nil {
		return err
	}
	first := filepath.Join(dir, "first.sql") // one statement a line
	if err := os.WriteFile(first, []byte("CREATE DATABASE leaf;\n"+
		"CREATE USER 'root'@'127.0.0.1' IDENTIFIED BY '"+password+"';\n"+
		"GRANT ALL ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;\n"), 0o600); err != nil {
		return err
	}
	return runTool(exec.CommandContext(ctx, binary, append(m.args(dir), "--initialize-insecure", "--init-file="+first)...), dir)
}

func (m mySQL) command(ctx context.Context, dir string, port int) (*exec.Cmd, error) {
	binary, err := findMySQL()
	if err != nil {
		return nil, err
	}
	return exec.CommandContext(ctx, binary, append(m.args(dir),
		"--socket=server.sock", // inside the data folder: a path longer than 107 bytes is refused
		"--pid-file="+filepath.Join(dir, "server.pid"),
		"--bind-address=127.0.0.1", "--port="+strconv.Itoa(port), "--mysqlx=OFF",
		"--skip-name-resolve",
		"--max-connections=1000",
		"--innodb-buffer-pool-size=32M", "--performance-schema=OFF",
	)...), nil
}

// args are common to the server and its installer.
func (mySQL) args(dir string) []string {
	args := []string{
		"--no-defaults", "--datadir=" + filepath.Join(dir, "data"), "--tmpdir=" + filepath.Join(dir, "tmp"),
		"--innodb-redo-log-capacity=16M",
		"--skip-log-bin",          // as MariaDB: a second sync with each commit, which tests nothing of ours
		"--secure-file-priv=NULL", // the default is a folder of the package
	}
	if os.Geteuid() == 0 {
		args = append(args, "--user=root") // it refuses to run as root unless told to
	}
	return args
}

func (m mySQL) first(port int, password string) Database { return m.later(port, password) }

func (mySQL) later(port int, password string) Database {
	return Database{&url.URL{Scheme: "mysql", User: url.UserPassword("root", password), Host: address(port), Path: "/leaf"}}
}

func (mySQL) setUp(context.Context, Database, string) error { return nil }

func (mySQL) stopSignal() syscall.Signal { return syscall.SIGTERM }
