package app

import (
	"context"
	"crypto/tls"
	"errors"
	"io/fs"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/driver/datadir"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/limit"
	"github.com/leaf-idgen/leaf/worker"
)

// Parsers that have no exported door of their own.
var (
	Advertised   = advertised
	ClockAddress = clockAddress
)

// AskClock asks a peer for its time, as a node does that has TLS or not.
func AskClock(ctx context.Context, p worker.Peer, secure *tls.Config) (time.Time, error) {
	return (&App{secure: secure}).askClock(ctx, p)
}

// UntilEnd returns when the node is to be stopped.
func (a *App) UntilEnd(ctx context.Context) error { return a.untilEnd(ctx) }

// OpenSlots opens the records of slots in the first store.
func (a *App) OpenSlots() (worker.Records, error) { return a.dbs.stores[0].openSlots() }

// BesideStoreIs reports whether the registry, the directory, the slots of the node, and those that a test has opened
// in a store in etcd have the password.
func (a *App) BesideStoreIs(password string) bool {
	beside := *a.dbs.stores[0].(etcdStore).beside
	other := slices.ContainsFunc(beside, func(p passwords) bool { return p.SetPassword(password) })
	return len(beside) == 4 && !other
}

// LostFile looks once at the files that unique IDs rest on, and returns an error if one is lost.
func LostFile(a *App) error {
	_ = a.files.look()
	return a.files.lostError()
}

// WeightOf returns the weight that the node publishes from now on.
func WeightOf(a *App) int { return a.presence.announcer.Status().Node.Weight }

// Strict reports whether the node takes a tag for one in strict order.
func Strict(a *App, tag string) bool { return a.alloc.Strict(tag) }

// WeightInOrder returns the weight that the node has for tags in strict order.
func WeightInOrder(a *App) int { return a.order.weight() }

// Property is one entry of a .properties file.
// StaticNumber returns the worker ID of a static node with this address and host name.
func StaticNumber(c config.Snowflake, address, host string) (int64, error) {
	workers, err := c.Workers()
	if err != nil {
		return 0, err
	}
	return staticNumber(c, workers, address, func() (string, error) { return host, nil })
}

// WithSelfCheck returns o with another self-check of the watchdog.
func (o Options) WithSelfCheck(f func()) Options {
	o.selfCheck = f
	return o
}

// On returns o for a machine with these interfaces.
func (o Options) On(list ...Interface) Options {
	o.interfaces = func() ([]Interface, error) { return list, nil }
	return o
}

// ReadingLimits returns options for a node that reads its limits through f.
func (o Options) ReadingLimits(f func(limit.Store) limit.Store) Options {
	o.limits = f
	return o
}

// Elapsed is the elapsed time that the engine of snowflake mode goes by.
func (a *App) Elapsed() time.Duration {
	return a.workerConfig(netip.AddrPort{}).WithDefaults().Elapsed()
}

// DirectoryOf returns where the directory of nodes of a configuration is, "" for none.
func DirectoryOf(c config.Config) (where string, err error) {
	dbs, err := openDatabases(c, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return "", err
	}
	d, err := openDirectory(c, dbs, slog.New(slog.DiscardHandler))
	if d != nil {
		where, err = d.where, d.Close()
	}
	return where, errors.Join(err, dbs.Close())
}

// ClientAddress is the address by which clients reach a listener.
var ClientAddress = clientAddress

// AskPeer asks a peer for its time.
func (a *App) AskPeer(ctx context.Context, p worker.Peer) (time.Time, error) {
	return a.askClock(ctx, p)
}

// CheckToken tells whether a client may show this token.
func (a *App) CheckToken(token string) error {
	_, err := a.tokens.clients.Identify(leaf.Credentials{Token: token})
	return err
}

// CheckAdminToken tells whether an administrator may show this token over TCP.
func (a *App) CheckAdminToken(token string) error {
	_, err := a.tokens.admin.Identify(leaf.Credentials{Token: token})
	return err
}

// BoundConnections returns the bounds that a node with this limit of open files uses.
// isSet says which keys somebody has set.
func BoundConnections(c config.Config, files uint64, isSet func(key string) bool, log *slog.Logger) (http, grpc, resp, admin int64) {
	a := &App{cfg: c, log: log, opts: Options{IsSet: isSet, openFiles: func() uint64 { return files }}}
	a.conns = a.boundConnections()
	a.logConnections()
	return a.conns.of("http"), a.conns.of("grpc"), a.conns.of("resp"), a.conns.of(config.SectionAdmin)
}

// Reloadable are the keys that a reload changes.
func Reloadable() []string { return slices.Sorted(slices.Values(reloadable)) }

// Sections are what clients read of a node, with the section of each protocol as its address.
func Sections() (n discovery.Node) {
	for _, p := range protocols() {
		*p.address(&n) = p.section
	}
	return n
}

// WatchPause is the time between two looks at the files that unique IDs rest on.
const WatchPause = watchPause

// LostAlarm is the alarm about a lost file.
var LostAlarm = lostAlarm

// LookAt adds a check to those of the files. Call it before Start.
func (a *App) LookAt(check func() error) { a.files.checks = append(a.files.checks, check) }

// DrainAsked is closed when an administrator has asked the node to drain.
func (a *App) DrainAsked() <-chan struct{} { return a.drain.asked }

// Sources are sources.
type Sources struct{ s sources }

// SourcesOf returns the sources of a configuration that was read from these files.
func SourcesOf(files map[string]fs.FileInfo) *Sources { return &Sources{sources{used: files}} }

// Look is look.
func (s *Sources) Look() (again bool, changed []string) { return s.s.look() }

// Read says that the files of the last look were read, and with which error.
func (s *Sources) Read(err error) (news bool) {
	if err == nil {
		s.s.used = s.s.last
	}
	return s.s.failed(err)
}

// Ready is what the administrator's port says.
func (a *App) Ready() leaf.Readiness { return a.ready() }

// KnownRegistry returns the registry as a node with this data directory uses it. inStore is of one in the store of a node with
// segment mode.
func KnownRegistry(r interface {
	worker.Registry
	identified
}, dir *datadir.Dir, inStore bool,
) (worker.Registry, error) {
	known := &registry{Registry: r, ids: r, inStore: inStore, plain: inStore}
	err := known.knownToNode(dir, slog.New(slog.DiscardHandler))
	return known.Registry, err
}

// LostAFile reports whether the node knows that a file is lost.
func (a *App) LostAFile() bool { return a.files.lostError() != nil }

// HoldsNoWorker reports whether snowflake mode was ended.
func (a *App) HoldsNoWorker() bool { return a.worker.Status().State == worker.Closed }

// ReloadWhenAsked is what Run does beside the servers.
func (a *App) ReloadWhenAsked(ctx context.Context) { a.reloadWhenAsked(ctx) }
