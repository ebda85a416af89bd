package server

import (
	"context"
	"os/exec"
	"syscall"
)

// engine is what differs between the two kinds of database server. Paths are
// inside the folder of one instance.
type engine interface {
	name() string     // for messages and folders
	variable() string // the environment variable that names a shared server
	// install fills the data folder; the superuser gets password if it can be
	// given one now.
	install(ctx context.Context, dir, password string) error
	// command is the server itself.
	command(ctx context.Context, dir string, port int) (*exec.Cmd, error)
	// first is the database to connect to right after install, later the one
	// that tests use. setUp, run once, leads from the one to the other.
	first(port int, password string) Database
	later(port int, password string) Database
	setUp(ctx context.Context, d Database, password string) error
	// stopSignal asks for an orderly end without waiting for sessions.
	stopSignal() syscall.Signal
}
