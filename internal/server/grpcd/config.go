package grpcd

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"log/slog"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/idtime"
	"github.com/leaf-idgen/leaf/internal/server/accept"
	"github.com/leaf-idgen/leaf/internal/server/format"
)

// Defaults and limits of Config.
const (
	defaultMaxConns         = 10_000
	defaultMaxStreams       = 256
	defaultConnectTimeout   = 5 * time.Second
	defaultIdleTimeout      = 5 * time.Minute
	defaultWriteTimeout     = 10 * time.Second
	defaultMaxWatches       = 1000
	defaultKeepAlive        = 30 * time.Second
	defaultKeepAliveTimeout = 10 * time.Second
	defaultMinPing          = 5 * time.Second

	// minKeepAlive: grpc-go raises a smaller one without a word.
	minKeepAlive = time.Second

	// maxRequestBytes: a call for a sequence has leaf.MaxEntities requests, of an entity of 64 bytes and two
	// numbers, at most 85 bytes each. Every other request is below 1 KB. A client of a later protocol may send fields
	// that this one does not know.
	maxRequestBytes = 96 << 10

	// maxMetadataBytes bounds the metadata of a call, counted as HTTP/2 does.
	maxMetadataBytes = 16 << 10

	// window is how much of its requests a stream can have waiting here, about 3,000 of
	// them. It is the smallest that grpc-go allows, and it does not grow: a stream that
	// is never read would fill a larger one, too.
	window = 64 << 10
)

// Config is what a Server needs. Every zero value means the default.
type Config struct {
	// Access gives the issuers of a call or a stream. Default: both modes disabled.
	Access leaf.Access

	// Formats are the keys of opaque IDs and the templates of tags. Default: none, and a client gets numbers only.
	Formats *format.Formats

	// Times translates between IDs of snowflake mode and time. Default: disabled.
	Times idtime.Layout

	// Route says where a tag in strict order is issued: the gRPC address of its owner, "" if it is not
	// known, and an epoch that is higher in a newer route. It must not block, and is called after
	// each request of segment mode that got IDs. Default: no tag is in strict order.
	Route func(tag string) (owner string, epoch int64, strict bool)

	// RouteEntity is Route for the numbers of an entity of a sequence. It is called after each request for numbers of
	// entities that was answered, with the first of them. Default: not known.
	RouteEntity func(sequence, entity string) (owner string, epoch int64, known bool)

	// Forwarded returns the issuers for a request of another node, which shows the secret and has
	// checked its client already; nil: the secret is wrong, which it counts and delays as it sees fit.
	// These issuers must not forward again, so that no request goes round in a circle. A stream keeps
	// them. Default: a request that another node has forwarded is refused.
	Forwarded func(secret string) *leaf.Issuers

	// Ready says for which modes the health service answers SERVING. It must not block. It
	// is asked with every Check and, for Watch, four times a second. Default: both modes
	// serve.
	Ready func() leaf.Readiness

	// MaxWatches limits the Watch streams of the health service, which need no token, over
	// all connections; a connection has one for each name at most. One more gets
	// RESOURCE_EXHAUSTED. Default 1,000.
	MaxWatches int

	// Cluster returns the ID of the node's cluster, "" if it is not known (yet). It must not
	// block. Every call and stream that begins shows it in the header leaf-cluster, so that
	// a client notices a node of another cluster. Default: not known.
	Cluster func() string

	// TLS makes the server speak TLS only. Default: plain.
	TLS *tls.Config

	// MaxConns limits the open connections. One more is closed at once, so that the
	// client tries the next node. Default 10,000.
	MaxConns int

	// MaxStreams limits the calls and streams under way on one connection. A client
	// waits with those beyond it. Default 256.
	MaxStreams int

	// ConnectTimeout bounds the time from the start of a connection to its first
	// frame, TLS included. Default 5 s.
	ConnectTimeout time.Duration

	// IdleTimeout is how long a connection may stay open without a call or stream. The
	// client is told to go, and connects again with its next call. Default 5 min.
	IdleTimeout time.Duration

	// WriteTimeout is how long a stream may wait for its client to read. It can be
	// exceeded by half. The connection is closed. Default 10 s.
	WriteTimeout time.Duration

	// KeepAlive is how long a connection may be silent before the client is asked for
	// a sign of life, and KeepAliveTimeout how long that sign may take before the
	// connection is closed. Defaults 30 s (at least 1 s) and 10 s.
	KeepAlive        time.Duration
	KeepAliveTimeout time.Duration

	// MinPing is the shortest time between two such questions of a client, with or
	// without calls under way. One that asks more often is told to go
	// (ENHANCE_YOUR_CALM). Default 5 s.
	MinPing time.Duration

	// RequestIDs reports whether a call that brings no ID gets one now. Access finds the ID in the
	// context of each call (package requestid). Default: only the ID that a call brings is shown.
	RequestIDs func() bool

	// Logger gets internal errors and panics. Default slog.Default().
	Logger *slog.Logger
}

// WithDefaults returns c with every zero field set to its default.
func (c Config) WithDefaults() Config {
	if c.Access == nil {
		c.Access = leaf.Anyone(nil, nil)
	}
	if c.Times == nil {
		c.Times = idtime.None{}
	}
	if c.Ready == nil {
		serves := leaf.ModeReadiness{Enabled: true, Ready: true}
		c.Ready = func() leaf.Readiness { return leaf.Readiness{Segment: serves, Snowflake: serves} }
	}
	if c.Cluster == nil {
		c.Cluster = func() string { return "" }
	}
	c.MaxConns = cmp.Or(c.MaxConns, defaultMaxConns)
	c.MaxWatches = cmp.Or(c.MaxWatches, defaultMaxWatches)
	c.MaxStreams = cmp.Or(c.MaxStreams, defaultMaxStreams)
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, defaultConnectTimeout)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, defaultIdleTimeout)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, defaultWriteTimeout)
	c.KeepAlive = cmp.Or(c.KeepAlive, defaultKeepAlive)
	c.KeepAliveTimeout = cmp.Or(c.KeepAliveTimeout, defaultKeepAliveTimeout)
	c.MinPing = cmp.Or(c.MinPing, defaultMinPing)
	if c.RequestIDs == nil {
		c.RequestIDs = func() bool { return false }
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// Validate returns leaf.ErrBadRequest, naming field, value and limit, for the first field
// that is neither zero nor within its limits.
func (c Config) Validate() error {
	for _, n := range []struct {
		name  string
		value int
		most  int
	}{
		{"max_conns", c.MaxConns, 1 << 30},
		{"max_streams", c.MaxStreams, 1 << 20},
		{"max_watches", c.MaxWatches, 1 << 20},
	} {
		if n.value < 0 || n.value > n.most {
			return leaf.BadField(n.name, n.value, fmt.Sprintf("must be 1 to %d, or 0 for the default", n.most))
		}
	}
	return accept.CheckTimes(
		accept.Time{Name: "connect_timeout", Value: c.ConnectTimeout, Least: time.Millisecond},
		accept.Time{Name: "idle_timeout", Value: c.IdleTimeout, Least: time.Millisecond},
		accept.Time{Name: "write_timeout", Value: c.WriteTimeout, Least: time.Millisecond},
		accept.Time{Name: "keep_alive", Value: c.KeepAlive, Least: minKeepAlive},
		accept.Time{Name: "keep_alive_timeout", Value: c.KeepAliveTimeout, Least: time.Millisecond},
		accept.Time{Name: "min_ping", Value: c.MinPing, Least: time.Millisecond},
	)
}
