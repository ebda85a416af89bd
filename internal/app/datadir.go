package app

import (
	"errors"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/datadir"
)

// openDir opens the data directory. That another process uses it is leaf.ErrNotReady: that one may be a command, or a killed
// node that the kernel has not ended yet. A service manager then tries again, as it does not after a conflict.
func openDir(path string) (*datadir.Dir, error) {
	dir, err := datadir.Open(path)
	if locked, ok := errors.AsType[*datadir.LockedError](err); ok {
		return nil, fmt.Errorf("%w: %w", leaf.ErrNotReady, locked)
	}
	return dir, err
}

// A command without a running node holds the data directory for as long as it works, most
// for a few milliseconds, a repair for seconds. A node or another command that starts meanwhile waits for a moment.
const (
	dirPatience = time.Second
	dirPause    = 20 * time.Millisecond
)

// openDirSoon is openDir that waits for a process which is about to end.
func openDirSoon(path string) (*datadir.Dir, error) {
	tick := time.NewTicker(dirPause)
	defer tick.Stop()
	for began := time.Now(); ; <-tick.C {
		dir, err := openDir(path)
		if _, locked := errors.AsType[*datadir.LockedError](err); !locked || time.Since(began) >= dirPatience {
			return dir, err
		}
	}
}

// openDirForCommand is openDir for a command that works on the data directory of a node.
// When the directory is locked, the error does not say "stop the node": the command can ask
// the node that runs, or try again when a node that stops has ended.
func openDirForCommand(path string) (*datadir.Dir, error) {
	dir, err := openDirSoon(path)
	if locked, ok := errors.AsType[*datadir.LockedError](err); ok {
		return nil, &inUseError{locked}
	}
	return dir, err
}

type inUseError struct{ locked *datadir.LockedError }

func (e *inUseError) Error() string {
	return fmt.Sprintf("%v: data directory %s is in use by %s. If a node runs there, leave out --store and --snowflake-registry: the command then asks the node. "+
		"If the node does not answer because its socket leaf.sock was deleted, restart the node. If the node is starting or stopping, or if this is another command, repeat the command in a moment",
		leaf.ErrConflict, e.locked.Path, e.locked.Holder())
}

func (e *inUseError) Unwrap() []error { return []error{leaf.ErrConflict, e.locked} }
