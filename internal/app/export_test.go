package app

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf/internal/limit"
	"github.com/leaf-idgen/leaf/worker"
)

// Parsers that have no exported door of their own.
var (
	Redact        = redact
	TranslateJDBC = translateJDBC
	Advertised    = advertised
	ClockAddress  = clockAddress
)

// AskClock asks a peer for its time, as a node does that has TLS or not.
func AskClock(ctx context.Context, p worker.Peer, secure *tls.Config) (time.Time, error) {
	return (&App{secure: secure}).askClock(ctx, p)
}

// Property is one entry of a .properties file.
type Property struct {
	Key, Value string
	Line       int
}

// ParseProperties reads the text of a .properties file.
func ParseProperties(data []byte) ([]Property, error) {
	entries, err := parseProperties("x.properties", data)
	var out []Property
	for _, e := range entries {
		out = append(out, Property{e.key, e.value, e.line})
	}
	return out, err
}

// ParseYAML returns the keys that a YAML file sets.
func ParseYAML(data []byte) (map[string][]string, error) {
	settings, err := yamlSettings("x.yaml", data)
	out := map[string][]string{}
	for _, s := range settings {
		out[s.key] = s.values
	}
	return out, err
}

// StaticNumber returns the worker ID of a static node with this address and host name.
func StaticNumber(c SnowflakeConfig, address, host string) (int64, error) {
	layout, err := parseLayout(c.Layout)
	if err != nil {
		return 0, err
	}
	return staticNumber(c, layout, address, func() (string, error) { return host, nil })
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

// FenceURL takes a value of segment.cluster-fence apart.
func FenceURL(text string) (scheme string, servers []string, folder, name string, err error) {
	c, err := parseCoordinator(fenceKey, text, etcdFence)
	switch {
	case err != nil:
		return "", nil, "", "", err
	case c.zookeeper != nil:
		return "zookeeper", c.zookeeper.Servers, c.zookeeper.Chroot, c.zookeeper.Name, nil
	}
	for _, e := range c.etcd.Endpoints {
		transport, host, _ := strings.Cut(e, "://")
		scheme = map[string]string{"http": "etcd", "https": "etcds"}[transport]
		servers = append(servers, host)
	}
	return scheme, servers, "", strings.TrimPrefix(c.etcd.Prefix, etcdFence+"/"), nil
}

// FenceLimit is what an error about such a value says.
const FenceLimit = coordinatorLimit

// Elapsed is the elapsed time that the engine of snowflake mode goes by.
func (a *App) Elapsed() time.Duration { return a.workerConfig(netip.AddrPort{}).Elapsed() }

// DirectoryOf returns where the directory of nodes of a configuration is, "" for none.
func DirectoryOf(c Config) (where string, err error) {
	dbs, err := openDatabases(c, slog.New(slog.DiscardHandler))
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
func (a *App) CheckToken(token string) error { return a.tokens.clients.Check(token) }

// BoundConnections returns the bounds that a node with this limit of open files uses.
// isSet says which keys somebody has set.
func BoundConnections(c Config, files uint64, isSet func(key string) bool, log *slog.Logger) (http, grpc, resp, admin int64) {
	a := &App{cfg: c, log: log, opts: Options{IsSet: isSet, openFiles: func() uint64 { return files }}}
	a.conns = a.boundConnections()
	a.logConnections()
	return a.conns.http, a.conns.grpc, a.conns.resp, a.conns.admin
}

// Unstable is SnowflakeConfig.unstable.
func Unstable(c SnowflakeConfig, newDir bool) string { return c.unstable(newDir) }

// WatchPause is the time between two looks at the files that unique IDs rest on.
const WatchPause = watchPause
