package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

var errStopped = errors.New("app: the node was stopped before it was started")

// Stop ends the node within its drain delay and shutdown-timeout, or earlier if ctx ends:
// it says that it is not ready and serves on for the delay, stops accepting, lets requests
// finish, returns unused IDs, closes the stores and releases the data directory. A Start
// under way is ended, and a later one returns an error. Further calls return the result of
// the first.
func (a *App) Stop(ctx context.Context) error {
	a.stop.Do(func() {
		a.log.Info("stopping")
		a.leave(ctx)
		ctx, cancel := context.WithTimeout(ctx, a.cfg.ShutdownTimeout)
		defer cancel()
		a.abortStart()
		a.start.Do(func() { a.startErr = errStopped }) // or wait for the one under way
		a.stopErr = a.shutdown(ctx)
	})
	return a.stopErr
}

func (a *App) shutdown(ctx context.Context) error {
	drain, cancel := context.WithDeadline(ctx, a.drainDeadline(ctx))
	defer cancel()
	a.drain.enter(stageEnding)
	errs := []error{stopAll(drain, a.public)}
	a.drain.enter(stageReturned)
	ended, engines := a.closeEngines(ctx)
	errs = append(errs, engines, stopAll(ctx, a.private), a.alarms.Close(ctx))
	last := func(what string, f func() error) {
		err := closeInTime(ctx, what, f)
		ended = ended && !errors.Is(err, errHangs)
		errs = append(errs, err)
	}
	last("the use of the directory of nodes", a.presence.close)
	last("the use of the databases", a.dbs.Close)
	if a.fence != nil {
		last("the use of the cluster fence", a.fence.Close)
	}
	last("the watch of files, limits and cluster", func() error { a.serving.Wait(); return nil })
	// The lock goes last: until here the next process could meet our writes. If something
	// did not end in time, it goes with the process, because a disk that hangs may still
	// carry a write out.
	if ended {
		last("the release of the data directory", a.dir.Close)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	a.log.Info("stopped")
	return nil
}

// drainDeadline leaves the engine time for its last calls to the databases.
func (a *App) drainDeadline(ctx context.Context) time.Time {
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	return time.Now().Add(max(left/2, left-2*a.cfg.Segment.LoadTimeout))
}

// closeListener closes a listener that a server may have closed, or never served.
func closeListener(ln net.Listener) error {
	if err := ln.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// undo closes what New opened, in reverse order, and the data directory last. As in
// shutdown, its lock goes with the process if something did not end: an engine may still
// write there.
func (a *App) undo() error {
	if err := a.closers.close(); err != nil || a.dir == nil {
		return err
	}
	return a.dir.Close()
}
