package server

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

type postgres struct{}

func (postgres) name() string     { return "postgres" }
func (postgres) variable() string { return "LEAF_TEST_POSTGRES" }

func (postgres) install(ctx context.Context, dir, password string) error {
	server, err := find("postgres", "postgresql")
	if err != nil {
		return err
	}
	credential, err := postgresUser()
	if err != nil {
		return err
	}
	passwordFile := filepath.Join(dir, "password")
	if err := os.WriteFile(passwordFile, []byte(password+"\n"), 0o600); err != nil {
		return err
	}
	if err := chown(credential, dir, passwordFile); err != nil {
		return err
	}
	// md5, because the key derivation of scram-sha-256 takes longer than the
	// connect timeout under test when a race-enabled client opens many at once.
	cmd := exec.CommandContext(ctx, filepath.Join(filepath.Dir(server), "initdb"),
		"-D", filepath.Join(dir, "data"), "-U", "postgres", "-A", "md5", "--pwfile="+passwordFile,
		"-N", "--no-locale", "-E", "UTF8")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	return runTool(cmd, dir)
}

func (postgres) command(ctx context.Context, dir string, port int) (*exec.Cmd, error) {
	binary, err := find("postgres", "postgresql")
	if err != nil {
		return nil, err
	}
	credential, err := postgresUser()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, binary, "-D", filepath.Join(dir, "data"), "-p", strconv.Itoa(port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
		"-c", "max_connections=300", "-c", "shared_buffers=32MB",
		"-c", "dynamic_shared_memory_type=mmap", // in the data folder, where Close finds it
	)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: credential}
	return cmd, nil
}

// postgresUser returns whom to run as: PostgreSQL refuses root. nil means as
// ourselves.
func postgresUser() (*syscall.Credential, error) { return serviceUser("postgres", "postgresql") }

func (p postgres) first(port int, password string) Database {
	return p.later(port, password).Named("postgres")
}

func (postgres) later(port int, password string) Database {
	return Database{&url.URL{
		Scheme: "postgres", User: url.UserPassword("postgres", password), Host: address(port), Path: "/leaf",
		RawQuery: "sslmode=disable",
	}}
}

func (postgres) setUp(ctx context.Context, d Database, _ string) error {
	return d.exec(ctx, "CREATE DATABASE leaf")
}

// stopSignal is that of the "fast" shutdown.
func (postgres) stopSignal() syscall.Signal { return syscall.SIGINT }
