package client

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client/cache"
	"github.com/leaf-idgen/leaf/discovery"
)

// Option sets one thing of a Client. A value outside its limits makes New fail with
// leaf.ErrBadRequest, which names the option, the value and the limit.
type Option func(*options)

type options struct {
	zone       string
	token      string
	name       string
	tls        *tls.Config
	plain      bool
	refresh    time.Duration
	nodeFile   string
	hedgeAfter time.Duration
	ratio      float64
	perSecond  int
	timeout    time.Duration
	runtime    leaf.Runtime
	logger     *slog.Logger
	cache      *cache.Config // nil: none
	unique     bool

	dial dialer // set by tests; default: gRPC
}

func defaults() *options {
	return &options{
		plain:     true,
		refresh:   2 * time.Second,
		ratio:     0.2,
		perSecond: 100,
		timeout:   2 * time.Second,
		runtime:   leaf.SystemRuntime(),
		logger:    slog.Default(),
	}
}

// WithZone sets the zone of this client, overriding the default of "", which treats all
// nodes alike. Nodes of other zones are asked only while none of this zone is usable,
// or when those of this zone do not answer. At most 64 bytes.
func WithZone(zone string) Option { return func(o *options) { o.zone = zone } }

// WithToken sets the token that the client shows (auth.token of the nodes), overriding
// the default of none. At most 4 KiB of printable ASCII. Without TLS it crosses the
// network as plain text.
func WithToken(token string) Option { return func(o *options) { o.token = token } }

// WithName sets what the client calls itself, overriding the default of "". Limits per
// client count by this name unless the client has a certificate. At most 128 bytes of
// printable ASCII, no space at either end.
func WithName(name string) Option { return func(o *options) { o.name = name } }

// WithTLS turns TLS on, overriding the default of plain connections. With a certificate
// in config the client is known by the name in it. ServerName is needed where addresses
// are not the names in the nodes' certificates, e.g. with [DNS]. The config is copied
// and must not be nil.
func WithTLS(config *tls.Config) Option {
	return func(o *options) { o.tls, o.plain = config, false }
}

// WithRefresh sets how often the list of nodes is read, overriding the default of 2 s.
// Changes of weights count from then on. 10 ms to 1 h.
func WithRefresh(every time.Duration) Option { return func(o *options) { o.refresh = every } }

// WithNodeFile sets a file that holds the last list of nodes, overriding the default of
// none. It is read if the Resolver does not answer at the start, and replaced atomically
// when the list changes. Clients of one cluster may share it.
func WithNodeFile(path string) Option { return func(o *options) { o.nodeFile = path } }

// WithHedgeAfter sets how long a request may stay without an answer before another node
// is asked the same, overriding the default of 0, which follows the latency of the node:
// twice its 95th percentile, 10 to 250 ms. A node of another zone is asked after four
// times as long, at least 100 ms. IDs of the answer that comes second are lost. 0, or
// 1 ms to 1 min.
func WithHedgeAfter(d time.Duration) Option { return func(o *options) { o.hedgeAfter = d } }

// WithRetryBudget bounds hedges and retries to a share of the requests plus a number
// per second, overriding the default of 0.2 and 100. Up to 1,000 that were not used can
// be saved up, for the moment when a node dies. A retry beyond that waits, a hedge is
// left out. Tags share it fairly: one may take no more than it leaves. A small budget delays callers when nodes fail, a large one multiplies the
// load of the nodes that are left. ratio 0 to 1, perSecond 1 to 1,000,000.
func WithRetryBudget(ratio float64, perSecond int) Option {
	return func(o *options) { o.ratio, o.perSecond = ratio, perSecond }
}

// WithTimeout sets how long a call may take whose context has no deadline, and how long
// any call goes on asking while every node answers that it cannot, overriding the default
// of 2 s. 1 ms to 1 h. A call that waits can take a quarter of a second longer.
func WithTimeout(d time.Duration) Option { return func(o *options) { o.timeout = d } }

// WithRuntime sets clock, goroutines and waiting, overriding the default of
// leaf.SystemRuntime. It is for tests.
func WithRuntime(rt leaf.Runtime) Option { return func(o *options) { o.runtime = rt } }

// WithLogger sets where the client reports nodes that fail and return, and lists that
// cannot be read, overriding the default of slog.Default. Its handler may block and may
// call the client: no call waits for it.
func WithLogger(l *slog.Logger) Option { return func(o *options) { o.logger = l } }

// maxNameLen is what nodes accept (limit.MaxClientLen), in bytes.
const maxNameLen = 128

func (o *options) validate() error {
	for _, s := range []struct {
		name, value string
		longest     int
	}{
		{"WithZone", o.zone, discovery.MaxNameLen},
		{"WithToken", o.token, 4 << 10},
		{"WithName", o.name, maxNameLen},
	} {
		if len(s.value) > s.longest {
			return leaf.BadField(s.name, fmt.Sprint(len(s.value), " bytes"), fmt.Sprintf("must have at most %d bytes", s.longest))
		}
		for _, c := range []byte(s.value) {
			if s.name != "WithZone" && (c < ' ' || c > '~') {
				return leaf.BadField(s.name, "...", "must be printable ASCII") // not the value: it may be the token
			}
		}
	}
	for _, d := range []struct {
		name     string
		value    time.Duration
		min, max time.Duration
		zero     bool
	}{
		{"WithRefresh", o.refresh, 10 * time.Millisecond, time.Hour, false},
		{"WithHedgeAfter", o.hedgeAfter, time.Millisecond, time.Minute, true},
		{"WithTimeout", o.timeout, time.Millisecond, time.Hour, false},
	} {
		if d.value == 0 && d.zero {
			continue
		}
		if d.value < d.min || d.value > d.max {
			return leaf.BadField(d.name, d.value, fmt.Sprintf("must be %v to %v", d.min, d.max))
		}
	}
	switch {
	case strings.TrimSpace(o.name) != o.name:
		return leaf.BadField("WithName", o.name, "must not begin or end with a space")
	case !o.plain && o.tls == nil:
		return leaf.BadField("WithTLS", "nil", "must be a configuration")
	case !(o.ratio >= 0 && o.ratio <= 1): // NaN is outside too
		return leaf.BadField("WithRetryBudget ratio", o.ratio, "must be 0 to 1")
	case o.perSecond < 1 || o.perSecond > 1_000_000:
		return leaf.BadField("WithRetryBudget perSecond", o.perSecond, "must be 1 to 1000000")
	case o.runtime == nil:
		return leaf.BadField("WithRuntime", "nil", "must be a runtime")
	case o.logger == nil:
		return leaf.BadField("WithLogger", "nil", "must be a logger")
	}
	return nil
}
