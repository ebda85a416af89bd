package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/driver/sqldb"
	"github.com/leaf-idgen/leaf/segment"
)

// watchPause is the time between two looks at the files that unique IDs rest on.
const watchPause = 250 * time.Millisecond

// files are those that unique IDs rest on. Once one was deleted or replaced while the
// node runs, another process may use what its path names now, and this one issues
// nothing more, whatever comes back.
type files struct {
	checks []func() error
	alarms leaf.Alarms
	log    *slog.Logger
	lost   atomic.Pointer[lostError]
}

// lostError has the path in its cause, but not in the text, which goes to clients.
type lostError struct{ cause error }

func (e *lostError) Error() string {
	return leaf.ErrNotReady.Error() + ": this node issues nothing any more, because it lost a file; its alarms say which"
}

func (e *lostError) Unwrap() []error { return []error{leaf.ErrNotReady, e.cause} }

// openFiles names the files of the node. Those of a registry in a store are the store's.
func (a *App) openFiles() {
	a.files = &files{checks: []func() error{a.dir.Check}, alarms: a.alarms, log: a.log}
	for _, s := range a.dbs.stores {
		a.files.checks = append(a.files.checks, s.CheckFile)
	}
	if a.registry != nil {
		a.registry.files = a.files
	}
	if a.registry != nil && a.registry.records != nil {
		a.files.checks = append(a.files.checks, a.registry.records.CheckFile)
	}
}

// watchFiles ends snowflake mode with the first loss: a worker ID that it took later would be one of the database that stands
// where the lost one was, and keep the nodes there from it.
func (a *App) watchFiles(ctx context.Context) {
	a.files.watch(ctx)
	if a.files.lostError() != nil && a.worker != nil {
		_ = a.worker.Close(context.WithoutCancel(ctx)) // the alarm tells of the loss; Stop waits for the end
	}
}

// watch looks at the files until ctx ends or one is lost.
func (f *files) watch(ctx context.Context) {
	t := time.NewTicker(watchPause)
	defer t.Stop()
	unseen := false // the last look failed
	for f.lostError() == nil {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		err := f.look()
		if err != nil && !unseen {
			f.log.Warn("the files that unique IDs depend on cannot be checked for deletion now; the node serves on and checks again", "error", err)
		}
		unseen = err != nil
	}
}

// look checks all files once. An error that is no loss says that a file cannot be
// looked at now.
func (f *files) look() error {
	var errs []error
	for _, check := range f.checks {
		err := check()
		_, ofFolder := errors.AsType[*datadir.LostError](err)
		if ofFolder || errors.Is(err, sqldb.ErrFileLost) {
			f.lost.CompareAndSwap(nil, &lostError{err})
			f.alarms.Raise(lostAlarm(err))
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// explain returns why the node cannot start. A lost file comes before what it makes fail: a missing
// database asks for leaf schema apply, which makes an empty one.
func (f *files) explain(err error) error {
	if err == nil {
		return nil
	}
	err = errors.Join(err, f.look())
	if lost := f.lost.Load(); lost != nil {
		return lost.cause
	}
	return err
}

// isLost looks once more: a claim may come between two looks.
func (f *files) isLost() bool {
	if f == nil {
		return false
	}
	_ = f.look() // what cannot be looked at is not lost
	return f.lostError() != nil
}

func lostAlarm(err error) leaf.Alarm {
	return leaf.Alarm{
		Code: leaf.AlarmFile, Subject: "files",
		Text: fmt.Sprintf("this node issues no IDs any more, in no mode: %v", err),
		Do: "stop this node and every other process that was started with these files; if the file was moved, put it back, and never use a backup; " +
			"then start the node. If the whole data directory or a database was deleted, first run, for each tag: leaf tag create TAG --start NUMBER, or, if it says that the tag exists: leaf tag set TAG --max-id NUMBER, with " + segment.AboveAll,
	}
}

// lostError returns nil while no file is lost.
func (f *files) lostError() error {
	if e := f.lost.Load(); e != nil {
		return e
	}
	return nil
}

// guard returns an issuer that ends with the first loss. What a call was given while the
// loss was noticed is lost, not issued.
func (f *files) guard(inner leaf.Issuer) leaf.Issuer { return guarded{inner, f} }

type guarded struct {
	inner leaf.Issuer
	files *files
}

// Next implements leaf.Issuer.
func (g guarded) Next(ctx context.Context, tag string) (int64, error) {
	if err := g.files.lostError(); err != nil {
		return 0, err
	}
	id, err := g.inner.Next(ctx, tag)
	if lost := g.files.lostError(); lost != nil {
		return 0, lost
	}
	return id, err
}

// NextN implements leaf.Issuer.
func (g guarded) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	if err := g.files.lostError(); err != nil {
		return nil, err
	}
	got, err := g.inner.NextN(ctx, tag, n)
	if lost := g.files.lostError(); lost != nil {
		return nil, lost
	}
	return got, err
}
