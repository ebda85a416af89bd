package server

import (
	"context"
	"os/exec"
	"syscall"
	"time"
)

const (
	// askTimeout bounds one question to one node that is then asked again: a
	// frozen one never answers.
	askTimeout = time.Second
	// versionTimeout bounds one that is asked once. An etcd that is asked as a
	// ZooKeeper never answers either.
	versionTimeout = 5 * time.Second
)

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
	// version asks for e.g. "3.8.0".
	version(ctx context.Context, addr string) (string, error)
	// fresh makes a root that nobody else uses, and drop removes it with all
	// that is below.
	fresh(ctx context.Context, servers []string) (root string, drop func(context.Context) error, err error)
	// stopSignal asks for an orderly end without waiting for sessions.
	stopSignal() syscall.Signal
}
