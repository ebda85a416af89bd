package app

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/internal/alarm"
	"github.com/leaf-idgen/leaf/internal/limit"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/meter"
	"github.com/leaf-idgen/leaf/internal/server/admin"
	"github.com/leaf-idgen/leaf/internal/server/console"
	"github.com/leaf-idgen/leaf/internal/trace"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/worker"
)

// Options are what a program decides, not its user.
type Options struct {
	Logger  *slog.Logger // default: discard
	Version string       // shown by commands
	Notes   []string     // of Load, for the log

	Warnings []string // of Load, for the log

	// Reload makes Run read the configuration again, with Load, and put into force what
	// can change while the node runs (App.Reload). nil: no signal does. Without Load nothing
	// does.
	Reload <-chan os.Signal
	Load   func() (cfg config.Config, files map[string]fs.FileInfo, err error)

	// Files are those that the configuration comes from, as Load returns them
	// (Loaded.Files): a change of one is a reload, too.
	Files map[string]fs.FileInfo

	// Level is that of Logger, for a reload. nil: it needs a restart.
	Level *slog.LevelVar

	// Warn gets what the user of a command should know beside its result. nil: it is dropped.
	Warn func(text string)

	// Snowflake says that the user asked for snowflake mode (Loaded.AsksForSnowflake). A node
	// that can never serve it then does not start.
	Snowflake bool

	// IsSet reports whether a key was set, also to its default (Loaded.IsSet). nil: none was.
	IsSet func(key string) bool

	// Manager is told how the node is, by Run.
	Manager Manager

	selfCheck  func()                          // of the watchdog; default: that of the engines
	openFiles  func() uint64                   // the limit of this process, 0 for none; default: the system's
	interfaces func() ([]Interface, error)     // default: those of this machine
	limits     func(s limit.Store) limit.Store // what stands before a database when limits are read; default: nothing
}

// logger is Logger, or one that discards.
func (o Options) logger() *slog.Logger { return cmp.Or(o.Logger, slog.New(slog.DiscardHandler)) }

// App is one node. Make it with New, then Start, then Stop. All methods are safe
// for concurrent use.
type App struct {
	cfg     config.Config // that the node was started with
	inForce config.Config // cfg with what reloads have changed; of reloadWhenAsked
	sources sources       // of the configuration; of reloadWhenAsked
	opts    Options
	log     *slog.Logger
	created time.Time

	dir      *datadir.Dir
	dbs      *databases
	alarms   *alarm.Board
	alloc    *segment.Allocator // nil: segment mode is off
	registry *registry          // nil: snowflake mode is off
	worker   *worker.Holder     // nil: snowflake mode is off
	leftOut  error              // why snowflake mode is off although it is enabled; nil: it is not
	fence    io.Closer          // of the cluster fence; nil: none
	presence *presence          // nil: in no directory
	cluster  cluster
	files    *files          // that unique IDs rest on
	issuers  leaf.Issuers    // the engines, as long as no file is lost
	gate     *limit.Gate     // what all protocols take their IDs from
	limits   *limit.Follower // of the gate; before it until the limits are known
	audit    *manage.AuditLog
	tracer   *trace.Tracer // nil: trace.url is not set

	metrics   http.Handler    // the page for Prometheus
	meters    []*meter.Access // of the public servers
	accessLog atomic.Bool     // requests of clients have lines in the log
	tags      *meter.Tags     // that the page names

	unpublished error   // why presence is nil although there is a directory; nil: there is none
	closers     closers // of what New opened

	opaque          opaqueKeys
	tokens          tokens
	certificate     atomic.Pointer[tls.Certificate] // that secure shows
	authorities     atomic.Pointer[x509.CertPool]   // that must have signed what clients show to secure; nil: they show nothing
	secure          *tls.Config                     // of the public servers; nil: plain TCP
	listeners       map[string]net.Listener         // by section; none of a server that is off
	socket          net.Listener                    // of the administrator
	conns           bounds                          // of the listeners
	public, private []server
	serving         sync.WaitGroup
	drain           drain
	failures        chan error         // of a server that ended by itself
	reloads         chan reloadRequest // by administrators

	contact     func(ctx context.Context) error // the Starts of the engines, ended by abortStart
	abortStart  func()
	follow      func() // the limits, until abortStart
	watchTokens func() // auth.named, until abortStart
	sendSpans   func() // until abortStart
	watchLogins func() // raises the alarm of wrong tokens, until abortStart
	identify    func() // learns the ID of the cluster
	lookAfter   func() // the files, until abortStart
	monitor     *console.Monitor
	measure     func() // for the console, until abortStart
	agree       func() // on the keys of opaque IDs, until abortStart

	start, stop       sync.Once
	startErr, stopErr error
}

var errStopped = errors.New("app: the node was stopped before it was started")

// New opens and binds everything that cfg names, or nothing. It connects to no
// database but the embedded one, and to no registry. Errors: [config.Error]s, *datadir.LockedError if
// another process uses the data directory, or what the system said.
func New(cfg config.Config, opts Options) (_ *App, err error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if opts.IsSet == nil {
		opts.IsSet = func(string) bool { return false }
	}
	if opts.openFiles == nil {
		opts.openFiles = openFiles
	}
	if opts.interfaces == nil {
		opts.interfaces = systemInterfaces
	}
	a := &App{cfg: cfg, inForce: cfg, opts: opts, log: opts.logger(), created: time.Now(), failures: make(chan error, 8), reloads: make(chan reloadRequest), sources: sources{used: opts.Files}}
	a.drain.asked, a.drain.usual = make(chan struct{}), cfg.DrainDelay
	a.accessLog.Store(cfg.Log.Access)
	a.conns = a.boundConnections()
	defer func() {
		if err != nil {
			err = errors.Join(err, a.undo())
		}
	}()
	if a.tokens, err = newTokens(cfg); err != nil {
		return nil, err
	}
	ring, err := readRing(cfg.Opaque)
	if err != nil {
		return nil, err
	}
	if a.secure, err = a.openTLS(); err != nil {
		return nil, err
	}
	path, err := filepath.Abs(cfg.DataDir)
	if err != nil {
		return nil, fmt.Errorf("data directory: %w", err)
	}
	if _, err = admin.SocketPath(path); err != nil {
		return nil, &config.Error{Key: "data-dir", Value: cfg.DataDir, Limit: err.Error()}
	}
	if a.dir, err = openDirSoon(path); err != nil {
		return nil, err
	}
	a.dbs = &databases{}
	if cfg.NeedsStores() {
		if a.dbs, err = openDatabases(cfg, a.log); err != nil {
			return nil, err
		}
	}
	a.closers.add(a.dbs.Close)
	a.openTracer()
	a.dbs.tracer = a.tracer
	a.opaque.shared, a.opaque.wake = len(a.dbs.stores) > 0, make(chan struct{}, 1)
	if err = a.opaque.recall(a.dir); err != nil {
		return nil, err
	}
	if err = a.opaque.replace(cfg.Opaque, ring, a.dir, nil); err != nil {
		return nil, err
	}
	if cfg.Segment.Enable {
		if err = a.dbs.recall(a.dir); err != nil {
			return nil, err
		}
	}
	if err = a.bind(); err != nil {
		return nil, err
	}
	if err = a.openEngines(a.listeners["http"].Addr()); err != nil {
		return nil, err
	}
	a.openAuditLog()
	if a.presence, err = a.openPresence(); err != nil {
		return nil, err
	}
	a.closers.add(a.presence.close)
	a.openFiles()
	if err = a.openLimits(); err != nil {
		return nil, err
	}
	a.monitor = console.NewMonitor(figures{a})
	a.tags = meter.NewTags(int(cfg.Metrics.Tags))
	a.openMetrics()
	if err = a.openServers(); err != nil {
		return nil, err
	}
	stopping, cancel := context.WithCancel(context.Background())
	a.abortStart = cancel
	a.follow = func() { a.limits.Run(stopping) }
	a.watchTokens = func() { a.followNamed(stopping) }
	a.watchLogins = func() { a.watchGuard(stopping) }
	a.sendSpans = func() { a.sendTraces(stopping) }
	a.identify = func() { a.learnCluster(stopping) }
	a.lookAfter = func() { a.files.watch(stopping) }
	a.measure = func() { a.monitor.Run(stopping) }
	a.agree = func() { a.agreeOnKeys(stopping) }
	a.contact = func(ctx context.Context) error {
		ctx, done := context.WithCancel(ctx)
		defer done()
		defer context.AfterFunc(stopping, done)()
		err := a.startEngines(ctx)
		a.settleKeys(ctx)
		return err
	}
	return a, nil
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

// Addr returns the address of the HTTP server, also with port 0 in the
// configuration.
func (a *App) Addr() string { return a.AddrOf("http") }

// AddrOf returns the address of the listener of a section of the configuration: "http",
// "grpc", "resp" or "admin"; "" if it is off.
func (a *App) AddrOf(section string) string {
	ln := a.listeners[section]
	if ln == nil {
		return ""
	}
	return ln.Addr().String()
}

func (a *App) listening() manage.Addresses {
	var n discovery.Node
	for _, p := range protocols() {
		*p.address(&n) = a.AddrOf(p.section)
	}
	return manage.AddressesOf(n, a.AddrOf(config.SectionAdmin))
}

// Start serves, and makes first contact with the databases and the registry of worker
// IDs. Requests for IDs wait until the limits were read (limit.Follower.Access). It returns an error only if a mode can never serve (segment.ErrSchema,
// segment.ErrRule, *segment.ClusterError, worker.ErrSchema, worker.ErrForeign) or ctx ended; the caller then
// calls Stop. What does not answer is tried again in the background, and the other
// mode serves meanwhile. Further calls return the result of the first.
func (a *App) Start(ctx context.Context) error {
	a.start.Do(func() {
		a.announce()
		a.serving.Go(a.follow)
		a.serving.Go(a.watchTokens)
		a.serving.Go(a.watchLogins)
		a.serving.Go(a.sendSpans)
		a.serving.Go(a.identify)
		a.serving.Go(a.lookAfter)
		a.serving.Go(a.measure)
		a.serving.Go(a.agree)
		a.serveAll()
		a.presence.start()
		a.startErr = a.contact(ctx)
	})
	return a.startErr
}

func (a *App) report(err error) {
	if err != nil {
		a.failures <- err
	}
}

// Failed delivers an error if a server ends by itself. The node is then to be
// stopped.
func (a *App) Failed() <-chan error { return a.failures }

// announce prints the first lines of the log.
func (a *App) announce() {
	a.log.Info("data directory", "path", a.dir.Path())
	for _, address := range a.dbs.addresses() {
		a.log.Info("store", "url", address)
	}
	url := a.scheme() + "://" + reachable(a.Addr())
	a.log.Info("listening", "url", url)
	if a.alloc != nil {
		tag := "YOUR_TAG"
		if a.dbs.embedded {
			tag = demoTag
		}
		a.log.Info("try: curl " + url + "/api/segment/get/" + tag)
	}
	if a.worker != nil {
		info := a.registry.Info()
		if info.Shared && a.selfClock() == "" {
			_, port, _ := net.SplitHostPort(a.Addr())
			a.log.Warn("other nodes cannot ask this one for its time, because http.addr does not listen on snowflake.address; its clock is not compared with theirs", "http", a.Addr(), "address", a.registry.address,
				"do", "where several machines run nodes, let it listen there: --http-addr 0.0.0.0:"+port)
		}
		if newDir, err := hasNo(a.dir, "worker.json"); err == nil {
			if text := a.cfg.Snowflake.Unstable(newDir); text != "" {
				a.log.Warn(text, "address", a.registry.address)
			}
		}
		a.log.Info("worker IDs", "registry", info.Name, "kind", info.Kind, "namespace", a.cfg.Snowflake.Namespace, "address", a.registry.address)
		a.log.Info("try: curl " + url + "/api/snowflake/get/any")
	}
	for _, p := range append(protocols()[1:], protocol{section: config.SectionAdmin, name: "administration"}) {
		if addr := a.AddrOf(p.section); addr != "" {
			a.log.Info("listening", "protocol", p.name, "address", reachable(addr))
		}
	}
	a.logConnections()
	if ring := a.opaque.ring; ring != nil {
		a.log.Info("clients can ask for opaque IDs", "keys", a.cfg.Opaque.Keys, "bits", ring.Bits, "version_bits", ring.VersionBits, "issue", ring.Issue)
	}
	if a.presence != nil {
		a.log.Info("clients find this node", "directory", a.presence.where, "id", a.dir.NodeID(), "zone", a.cfg.Node.Zone, "weight", a.cfg.Node.Weight)
	}
	if key, addr := a.cfg.OpenAddress(); key != "" {
		a.log.Warn("auth.open: clients that reach this address need no token", "key", key, "address", addr)
	}
	for _, note := range a.opts.Notes {
		a.log.Info("configuration: " + note)
	}
	for _, warning := range a.opts.Warnings {
		a.log.Warn("configuration: " + warning)
	}
}

// reachable replaces the address that stands for all interfaces by one that a
// client on this machine can use.
func reachable(addr string) string {
	ap, err := netip.ParseAddrPort(addr)
	if err != nil || !ap.Addr().IsUnspecified() {
		return addr
	}
	return fmt.Sprintf("127.0.0.1:%d", ap.Port())
}

// Stop ends the node within its drain delay and shutdown-timeout, or earlier if ctx ends:
// it says that it is not ready and serves on for the delay, stops accepting, lets requests
// finish, returns unused IDs, closes the stores and releases the data directory. A Start under way is ended, and a later one returns
// an error. Further calls return the result of the first.
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

// Run is New, Start, and Stop when ctx ends, a server fails, or an administrator drains
// the node.
func Run(ctx context.Context, cfg config.Config, opts Options) error {
	a, err := New(cfg, opts)
	if err != nil {
		return err
	}
	stopping, ended := a.tellManager()
	defer ended()
	err = a.Start(ctx)
	if err == nil {
		err = a.untilEnd(ctx)
	} else if ctx.Err() != nil {
		err = nil // asked to stop while starting
	}
	stopping()
	return errors.Join(err, a.Stop(context.WithoutCancel(ctx)))
}

// untilEnd returns when the node is to be stopped.
func (a *App) untilEnd(ctx context.Context) error {
	reloading, cancel := context.WithCancel(ctx)
	defer cancel()
	go a.reloadWhenAsked(reloading)
	select {
	case <-ctx.Done():
		return nil
	case err := <-a.failures:
		return err
	case <-a.drain.asked:
		return nil
	}
}
