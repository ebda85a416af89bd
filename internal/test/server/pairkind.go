package server

import (
	"context"
	"os/exec"
	"syscall"
)

// role is what a node of a pair is told to be when it starts.
type role int

const (
	alone    role = iota // writable, and waits for nobody
	leading              // writable, and waits for its standby
	standby              // receives from the primary
	detached             // a standby that receives nothing
)

// pairKind is what differs between the kinds of pair. A Database called admin is
// that of a node's administrator.
type pairKind interface {
	name() string // for messages and folders
	stopSignal() syscall.Signal
	command(ctx context.Context, dir string, port int, r role) (*exec.Cmd, error)

	// admin is the administrator's, and client what users of the pair are given.
	// installed is the administrator's before setUp or follow.
	installed(addr, password string) Database
	admin(addr, password string) Database
	client(addr, password string) Database

	// install fills the folder of the first primary, and setUp, run once on it,
	// makes the database and its users.
	install(ctx context.Context, dir, password string) error
	setUp(ctx context.Context, addr, password string) error
	// clone fills the folder of a new standby of the primary at from, and follow,
	// run once on it, begins the replication.
	clone(ctx context.Context, dir, from, password string) error
	follow(ctx context.Context, addr, from, password string) error

	// synchronous makes the primary wait for its standby, or no longer.
	synchronous(ctx context.Context, admin Database, on bool) error
	// attached is an error while the primary has no standby that keeps up, or
	// does not wait for it if it is to be waited for.
	attached(ctx context.Context, primary, standby Database, waitedFor bool) error
	// cut makes the standby receive nothing more, and resume makes it receive
	// from the primary at from again.
	cut(ctx context.Context, admin Database) error
	resume(ctx context.Context, admin Database, from, password string) error
	// promote makes a standby that was cut a primary with all that it has
	// received, and returns how far that was.
	promote(ctx context.Context, admin Database) (position int64, err error)
	// position is the number of the last transaction that a primary committed.
	position(ctx context.Context, admin Database) (int64, error)
}
