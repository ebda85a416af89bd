package server

import (
	"context"
	"os/exec"
	"syscall"
	"time"
)

// askTimeout bounds one question to one node: a frozen one never answers.
const askTimeout = time.Second

// registry is what differs between ZooKeeper and etcd.
type registry interface {
	name() string     // for messages and folders
	variable() string // the environment variable that names a shared one
	ports() int       // that one node needs, the first of them for clients

	// install fills the folder of node n.
	install(n int, members []member) error
	// command is node n itself.
	command(ctx context.Context, n int, members []member) (*exec.Cmd, error)
	// leads reports whether the node says that it leads; an error means that it
	// does not serve.
	leads(ctx context.Context, addr string) (bool, error)
	version(ctx context.Context, addr string) (string, error)
	// fresh makes a root that nobody else uses, and drop removes it with all
	// that is below.
	fresh(ctx context.Context, servers []string) (root string, drop func(context.Context) error, err error)
	// stopSignal asks for an orderly end without waiting for sessions.
	stopSignal() syscall.Signal
}
