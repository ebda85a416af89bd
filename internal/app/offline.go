package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/server/admin"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// offline is the manage.StoreSite on opened stores, without a running node. It is
// used by one command at a time.
//
// Issuing and repairing need the fence of the data directory, and the folder's lock. The other
// commands use the fence if the folder exists and no process has its lock.
type offline struct {
	cfg     config.Config
	opts    Options
	dbs     *databases
	catalog *manage.Catalog

	dir     *datadir.Dir       // nil: not opened
	alloc   *segment.Allocator // nil: no fence
	refused bool               // the fence files are not whole
	fence   io.Closer          // of the cluster; nil: none
	started bool               // alloc was started
}

var _ manage.StoreSite = (*offline)(nil)

// newOffline opens the stores. The embedded database lives in the data directory,
// so it needs the lock at once.
func newOffline(cfg config.Config, opts Options) (_ *offline, err error) {
	o := &offline{cfg: cfg, opts: opts}
	defer func() {
		if err != nil {
			err = errors.Join(err, o.close())
		}
	}()
	if o.dbs, err = openDatabases(cfg, opts.logger(), nil); err != nil {
		return nil, err
	}
	if o.dbs.embedded && opts.NoEmbedded != nil {
		return nil, opts.NoEmbedded
	}
	o.catalog = o.dbs.catalog(cfg.Segment.LoadTimeout, o.mark)
	o.catalog.Engine, o.catalog.TagChanged = o.engine, o.tagChanged
	switch _, statErr := os.Stat(cfg.DataDir); {
	case o.dbs.embedded:
		if err := o.lock(openDirForCommand); err != nil {
			return nil, err
		}
		if err := o.prepare(); err != nil {
			return nil, err
		}
	case errors.Is(statErr, fs.ErrNotExist):
	default:
		// The lock fails while a node runs here. That is no error, and nothing to wait for: the
		// node knows its marks and guards itself. A damaged fence file is an error.
		open := openDir
		if opts.stopped {
			open = openDirForCommand
		}
		err := o.lock(open)
		if _, locked := errors.AsType[*datadir.LockedError](err); err != nil && (!locked || opts.stopped) {
			return nil, err
		}
	}
	return o, nil
}

// prepare makes the embedded database usable.
func (o *offline) prepare() error {
	timeout := 10 * o.cfg.Segment.LoadTimeout
	_, statErr := os.Stat(o.dbs.file)
	missing := o.dbs.stores[0].MissingFile()
	if o.opts.makeLost {
		missing = ""
	}
	first, err := firstMade(o.dir, missing)
	if err != nil {
		return err
	}
	if err := prepareEmbedded(o.dbs, o.dir, o.mark, timeout); err != nil {
		return err
	}
	if errors.Is(statErr, fs.ErrNotExist) && o.opts.Warn != nil {
		o.opts.Warn(fmt.Sprintf("no node runs in the data directory %s, so this command made a new database for itself: %s. Nodes with another data directory or with --store do not see what it changes; to manage those, name the --data-dir of a running node, or their --store", o.dir.Path(), o.dbs.file))
	}
	reg := &registry{}
	if err := o.dbs.stores[0].openRegistry(reg); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return errors.Join(markUnused(ctx, reg.records, o.dir, first), reg.Close())
}

// lock opens the data directory and reads its fence, once.
func (o *offline) lock(open func(path string) (*datadir.Dir, error)) error {
	if o.alloc != nil {
		return nil
	}
	dir, err := open(o.cfg.DataDir)
	if err != nil {
		return err
	}
	o.dir = dir
	if err := o.dbs.recall(dir); err != nil {
		return manage.StoreError(err)
	}
	if !o.opts.makeLost {
		if err := o.dbs.checkFiles(dir); err != nil {
			return err
		}
	}
	c, cluster, err := engineConfig(o.cfg, o.dbs, dir.NodeID(), slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	o.fence = cluster
	o.alloc, err = segment.New(o.dbs.router, withoutRecent{dir}, c)
	if _, o.refused = errors.AsType[*fence.RefusedError](err); o.refused && o.opts.withoutFence {
		return nil
	}
	return err
}

// mark returns what the fence knows of a tag. One that is refused may have known anything.
func (o *offline) mark(tag string) fence.Mark {
	if o.alloc == nil {
		return fence.Mark{Latched: o.refused}
	}
	return o.alloc.Mark(tag)
}

// bind checks that the databases belong to the configured division of tags.
func (o *offline) bind(ctx context.Context) error {
	for i, s := range o.dbs.stores {
		ctx, cancel := context.WithTimeout(ctx, o.cfg.Segment.LoadTimeout)
		err := s.Verify(ctx, o.dbs.router.Binding(i))
		cancel()
		if err != nil {
			return manage.StoreError(err)
		}
	}
	return nil
}

// engine returns the started engine, for calls that issue or repair.
func (o *offline) engine(ctx context.Context) (*segment.Allocator, error) {
	if err := o.lock(openDirForCommand); err != nil {
		return nil, err
	}
	if !o.started {
		// The engine would try again in the background; a command says what is wrong.
		if err := o.bind(ctx); err != nil {
			return nil, err
		}
		if err := o.dbs.remember(o.dir, nil, true); err != nil {
			return nil, err
		}
		o.started = true
		if err := o.alloc.Start(ctx); err != nil {
			return nil, manage.StoreError(err)
		}
	}
	return o.alloc, nil
}

func (o *offline) close() error {
	var engine, fence, stores, dir error
	if o.alloc != nil {
		ctx, cancel := context.WithTimeout(context.Background(), o.cfg.ShutdownTimeout)
		defer cancel()
		engine = o.alloc.Close(ctx)
	}
	if o.fence != nil {
		fence = o.fence.Close()
	}
	if o.dbs != nil {
		stores = o.dbs.Close()
	}
	if o.dir != nil && engine == nil { // else the lock goes with the process, as in App
		dir = o.dir.Close()
	}
	return errors.Join(engine, fence, stores, dir)
}

// Info implements manage.StoreSite.
func (o *offline) Info(ctx context.Context) (manage.Info, error) {
	info := manage.Info{Version: o.opts.Version, PID: os.Getpid(), DataDir: o.cfg.DataDir, Stores: o.dbs.addresses(), Ready: true}
	if err := o.bind(ctx); err != nil {
		info.Ready, info.Reasons = false, []string{err.Error()}
	}
	return info, nil
}

// Catalog implements manage.StoreSite.
func (o *offline) Catalog(ctx context.Context) (*manage.Catalog, error) {
	return o.catalog, o.bind(ctx)
}

// Engine implements manage.StoreSite.
func (o *offline) Engine(ctx context.Context) (*manage.Catalog, error) {
	_, err := o.engine(ctx)
	return o.catalog, err
}

// Limits implements manage.StoreSite.
func (o *offline) Limits(ctx context.Context) (*manage.Catalog, error) { return o.Catalog(ctx) }

// Issuer implements manage.StoreSite.
func (o *offline) Issuer(ctx context.Context) (leaf.Issuer, error) {
	engine, err := o.engine(ctx)
	if err != nil {
		return nil, err
	}
	return o.dbs.issuer(engine, o.cfg.Segment)
}

// tagChanged makes a change hold for the IDs that are issued after it.
func (o *offline) tagChanged(ctx context.Context, tag string) error {
	if !o.started {
		return nil
	}
	return o.alloc.Refresh(ctx, tag)
}

// withoutRecent hides the list of recent tags: a command that issues one ID must
// not load the ranges of all tags that the node served yesterday, nor forget them.
type withoutRecent struct{ fence.Disk }

const recentFile = "recent.json" // as package segment names it; a test compares

func (d withoutRecent) ReadFile(name string) ([]byte, error) {
	if name == recentFile {
		return nil, fs.ErrNotExist
	}
	return d.Disk.ReadFile(name)
}

func (d withoutRecent) Replace(name string, content []byte) error {
	if name == recentFile {
		return nil
	}
	return d.Disk.Replace(name, content)
}

// Open returns the Backend for one command: the running node in cfg's data directory if there
// is one, else what without opens. direct asks for that in any case. The caller calls done when
// it has finished; its error says that unused IDs were not returned, or a lock not released.
func Open(ctx context.Context, cfg config.Config, opts Options, direct bool, without Without) (b manage.Backend, done func() error, err error) {
	var noNode error
	if !direct || without == nil {
		if b, done, noNode = OpenNode(ctx, cfg); without == nil || !errors.Is(noNode, admin.ErrNoNode) {
			if noNode == nil && without != nil {
				warnOfOtherStores(ctx, b, cfg, opts)
			}
			return b, done, noNode
		}
	}
	site, done, err := without(ctx, cfg, opts, noNode)
	if err != nil {
		return nil, nil, err
	}
	return manage.On(site), done, nil
}

// Without opens what a command works on without a node: [Stores], [Registry] or [Directory].
// noNode is the error of the node that was looked for, nil if none was. A nil Without is that of
// a command that needs a node.
type Without func(ctx context.Context, cfg config.Config, opts Options, noNode error) (site any, done func() error, err error)

// Stores opens the databases.
func Stores(_ context.Context, cfg config.Config, opts Options, _ error) (site any, done func() error, err error) {
	o, err := newOffline(cfg, opts)
	if err != nil {
		return nil, nil, err
	}
	return o, o.close, nil
}
