package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/internal/alarm"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/limit"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/meter"
	"github.com/leaf-idgen/leaf/internal/server/admin"
	"github.com/leaf-idgen/leaf/internal/server/console"
	"github.com/leaf-idgen/leaf/internal/trace"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/worker"
)

// App is one node. Make it with New, then Start, then Stop. All methods are safe
// for concurrent use.
type App struct {
	cfg     config.Config // that the node was started with
	inForce config.Config // cfg with what reloads have changed; of reloadWhenAsked
	sources sources       // of the configuration; of reloadWhenAsked
	opts    Options
	log     *slog.Logger
	created time.Time

	dir       *datadir.Dir
	dbs       *databases
	alarms    *alarm.Board
	alloc     *segment.Allocator // nil: segment mode is off
	registry  *registry          // nil: snowflake mode is off
	worker    *worker.Holder     // nil: snowflake mode is off
	leftOut   error              // why snowflake mode is off although it is enabled; nil: it is not
	order     *order             // nil: this node takes no part in strict order
	sequences *sequences         // nil: it has none
	fence     io.Closer          // of the cluster fence; nil: none
	presence  *presence          // nil: in no directory
	cluster   cluster
	files     *files          // that unique IDs rest on
	issuers   leaf.Issuers    // the engines, as long as no file is lost
	gate      *limit.Gate     // what all protocols take their IDs from
	limits    *limit.Follower // of the gate; before it until the limits are known
	audit     *manage.AuditLog
	tracer    *trace.Tracer // nil: trace.url is not set

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
	others          atomic.Pointer[x509.CertPool]   // that must have signed what other nodes show to order; nil: those of the system
	secure          *tls.Config                     // of the public servers; nil: plain TCP
	listeners       map[string]net.Listener         // by section; none of a server that is off
	socket          net.Listener                    // of the administrator
	conns           bounds                          // of the listeners
	public, private []server
	serving         sync.WaitGroup
	drain           drain
	failures        chan error         // of a server that ended by itself
	reloads         chan reloadRequest // by administrators

	monitor *console.Monitor

	running    context.Context //nolint:containedctx // of what runs beside the servers; ended by abortStart
	abortStart func()

	start, stop       sync.Once
	startErr, stopErr error
}

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
	a.openTracer()
	a.dbs = &databases{}
	if cfg.NeedsStores() {
		if a.dbs, err = openDatabases(cfg, a.log, a.tracer); err != nil {
			return nil, err
		}
	}
	a.closers.add(a.dbs.Close)
	a.opaque.shared, a.opaque.wake = len(a.dbs.stores) > 0, make(chan struct{}, 1)
	if err = a.opaque.recall(a.dir); err != nil {
		return nil, err
	}
	if err = a.opaque.replace(cfg.Opaque, ring, a.dir, notCompared); err != nil {
		return nil, err
	}
	if a.keepsClusters() {
		if err = a.dbs.recall(a.dir); err != nil {
			return nil, err
		}
	}
	if err = a.dbs.checkFiles(a.dir); err != nil {
		return nil, err
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
	a.running, a.abortStart = context.WithCancel(context.Background())
	return a, nil
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
// IDs. Requests for IDs wait until the limits were read (limit.Follower.Access). It returns
// an error only if a mode can never serve (segment.ErrSchema, segment.ErrRule,
// *segment.ClusterError, worker.ErrSchema, worker.ErrForeign) or ctx ended; the caller then
// calls Stop. What does not answer is tried again in the background, and the other
// mode serves meanwhile. Further calls return the result of the first.
func (a *App) Start(ctx context.Context) error {
	a.start.Do(func() {
		a.announce()
		for _, run := range a.beside() {
			a.serving.Go(func() { run(a.running) })
		}
		a.serveAll()
		a.presence.start()
		a.startErr = a.files.explain(a.contact(ctx))
	})
	return a.startErr
}

// beside returns what runs beside the servers, until abortStart.
func (a *App) beside() []func(context.Context) {
	return []func(context.Context){
		a.limits.Run,
		a.followNamed,
		a.watchGuard,
		a.sendTraces,
		a.learnCluster,
		a.watchFiles,
		a.monitor.Run,
		a.agreeOnKeys,
	}
}

// contact is the Starts of the engines, ended by abortStart.
func (a *App) contact(ctx context.Context) error {
	ctx, done := context.WithCancel(ctx)
	defer done()
	defer context.AfterFunc(a.running, done)()
	err := a.startEngines(ctx)
	a.settleKeys(ctx) // mostly done by agreeOnKeys: a request right after the start is not to be refused
	return err
}

func (a *App) report(err error) {
	if err != nil {
		a.failures <- err
	}
}

// Failed delivers an error if a server ends by itself. The node is then to be
// stopped.
func (a *App) Failed() <-chan error { return a.failures }

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

// untilEnd returns when the node is to be stopped. Until abortStart, which comes after the drain delay, the
// configuration is reloaded: a node that serves must heed a token that was taken away.
func (a *App) untilEnd(ctx context.Context) error {
	go a.reloadWhenAsked(a.running)
	select {
	case <-ctx.Done():
		return nil
	case err := <-a.failures:
		return err
	case <-a.drain.asked:
		return nil
	}
}
