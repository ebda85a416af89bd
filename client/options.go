package client

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client/cache"
	"github.com/leaf-idgen/leaf/discovery"
)

// Option sets one thing of a Client. A value outside its limits makes New fail with
// leaf.ErrBadRequest, which names the option, the value and the limit.
type Option func(*options)

type options struct {
	zone       string
	token      func(context.Context) (string, error) // nil: none
	fixedToken string
	plainToken bool
	hosts      []string // patterns; empty: not set
	anyHost    bool
	cluster    *cluster
	connect    func(context.Context, string) (net.Conn, error) // nil: TCP
	intercept  []grpc.StreamClientInterceptor
	keepAlive  time.Duration
	trace      func(context.Context, Call) func(error)
	name       string
	tls        *tls.Config
	plain      bool
	maxNodes   int
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
		cluster:   &cluster{},
		maxNodes:  defaultMaxNodes,
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
// the default of none. At most 4 KiB of printable ASCII. It needs [WithTLS], or
// [WithPlainToken].
func WithToken(token string) Option {
	return func(o *options) { o.token, o.fixedToken = nil, token }
}

// WithTokenFunc sets where the token comes from, overriding [WithToken]: a new stream or
// health check asks f, so that a token can be changed while the client runs. One call of f
// runs at a time; streams that are opened meanwhile share its token. f may take 5 s; ctx
// ends then. The limits of a token are those of WithToken. An error of f, a panic, too
// long a wait or a token outside the limits fails the calls with leaf.ErrUnauthenticated.
func WithTokenFunc(f func(ctx context.Context) (string, error)) Option {
	return func(o *options) { o.token, o.fixedToken = f, "" }
}

// WithPlainToken allows the token to cross the network as plain text to any address that
// the Resolver lists, overriding the default of refusing it without [WithTLS].
func WithPlainToken() Option { return func(o *options) { o.plainToken = true } }

// WithHosts sets which hosts the Resolver may name, overriding the default of all. A
// pattern is a name, an address, *.DOMAIN for all names below DOMAIN, or a CIDR such as
// 10.0.0.0/8. Nodes at other hosts are not used.
func WithHosts(patterns ...string) Option { return func(o *options) { o.hosts = patterns } }

// WithAnyHost trusts the Resolver to name nodes of this cluster only, overriding the
// default of refusing TLS without an expected name: with write access to a directory
// another host with a certificate of its own can pass as a node.
func WithAnyHost() Option { return func(o *options) { o.anyHost = true } }

// WithName sets what the client calls itself, overriding the default of "". Limits per
// client count by this name unless the client has a certificate. At most 128 bytes of
// printable ASCII, no space at either end.
func WithName(name string) Option { return func(o *options) { o.name = name } }

// WithTLS turns TLS on, overriding the default of plain connections. With a certificate
// in config the client is known by the name in it. The name that is checked is
// ServerName; without one it is the host in the address, which must then be an expected
// one: of [Addresses], [Nodes] or [DNS], or one of [WithHosts]. The config is copied and
// must not be nil.
func WithTLS(config *tls.Config) Option {
	return func(o *options) { o.tls, o.plain = config, false }
}

// WithMaxNodes sets how many nodes of the list this client uses, overriding the default of
// 8. Clients choose different ones at random; a quarter of them, rounded down, is of other
// zones if [WithZone] is set and there are any. A node that fails is replaced by another
// one of the list until it works again: up to twice as many have a connection and health
// checks then. 1 to 1,000.
func WithMaxNodes(n int) Option { return func(o *options) { o.maxNodes = n } }

// WithRefresh sets how often the list of nodes is read, overriding the default of 2 s.
// Changes of weights count from then on. 10 ms to 1 h.
func WithRefresh(every time.Duration) Option { return func(o *options) { o.refresh = every } }

// WithNodeFile sets a file that holds the last list of nodes, overriding the default of
// none. It is read if the Resolver does not answer at the start, and replaced atomically
// when the list changes. It needs [WithCluster], and a file of another cluster is not
// read. Clients of one cluster may share it.
func WithNodeFile(path string) Option { return func(o *options) { o.nodeFile = path } }

// WithHedgeAfter sets how long a request may stay without an answer before another node
// is asked the same, overriding the default of 0, which follows the latency of the node:
// twice its 95th percentile, 10 to 250 ms. A node of another zone is asked after four
// times as long, at least 100 ms. For 10 s after a node had too few IDs for the callers of a
// tag, it is at least 1.25 s. IDs of the answer that comes second are lost. 0, or 1 ms to 1 min.
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

// WithCluster sets the ID of the cluster (in /readyz of its nodes, and in the directory),
// overriding the default of the first ID that a node or a list names. Nodes that say that
// they belong to another one are not used: [ErrOtherCluster]. At most 64 letters, digits,
// hyphens, dots or underscores.
//
// Set it in production. Without it, when a list or a name in DNS leads to nodes of two
// clusters, each client uses the cluster that it meets first, so two clients, or one before
// and after a restart, can take the same numbers from two clusters.
func WithCluster(id string) Option {
	return func(o *options) { o.cluster = &cluster{id: id, named: id != ""} }
}

// WithDialer sets how connections are made, overriding the default of TCP without a
// proxy. address is HOST:PORT; TLS comes on top.
func WithDialer(dial func(ctx context.Context, address string) (net.Conn, error)) Option {
	return func(o *options) { o.connect = dial }
}

// WithStreamInterceptors adds interceptors to the streams that carry requests and health
// checks, the first one outermost. A stream carries many calls; [WithTrace] sees each call.
// An interceptor that fails or panics ends the stream, and the client asks again; it may
// take 10 s to open a stream. It may keep messages, and must pass on each one once. With interceptors a call costs one change of goroutine more.
// A call for numbers of a sequence is a stream of its own, with one message each way.
func WithStreamInterceptors(interceptors ...grpc.StreamClientInterceptor) Option {
	return func(o *options) { o.intercept = append(slices.Clone(o.intercept), interceptors...) }
}

// WithKeepAlive sets how long a connection may be silent before the client asks it for a
// sign of life, overriding the default of 0, never: health checks do it every 2 s. Nodes
// end connections that ask more often than their grpc.min-ping. 0, or 10 s to 1 h.
func WithKeepAlive(every time.Duration) Option { return func(o *options) { o.keepAlive = every } }

// Call is what a trace is told of a call.
type Call struct {
	Tag       string // or the name of a sequence
	Snowflake bool   // the mode; false: segment
	Count     int    // IDs; of a sequence numbers of all entities, 0 if the call gives none
}

// WithTrace sets a hook for tracing, overriding the default of none: it is called when a
// call begins, by the caller's goroutine, and what it returns, unless it is nil, when the
// call ends. It must not block: the caller waits for it. Calls that [WithCache] answers
// from memory are not traced; its fetches are.
func WithTrace(begin func(context.Context, Call) (end func(error))) Option {
	return func(o *options) { o.trace = begin }
}

// maxNameLen is what nodes accept (limit.MaxClientLen), in bytes.
const maxNameLen = 128

func (o *options) validate() error {
	for _, s := range []struct {
		name, value string
		longest     int
	}{
		{"WithZone", o.zone, discovery.MaxNameLen},
		{"WithToken", o.fixedToken, maxTokenLen},
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
		{"WithKeepAlive", o.keepAlive, 10 * time.Second, time.Hour, true},
	} {
		if d.value == 0 && d.zero {
			continue
		}
		if d.value < d.min || d.value > d.max {
			return leaf.BadField(d.name, d.value, fmt.Sprintf("must be %v to %v", d.min, d.max))
		}
	}
	if id := o.cluster.get(); id != "" && discovery.CheckID(id) != nil {
		return leaf.BadField("WithCluster", id, "must be the ID of a cluster")
	}
	switch {
	case o.nodeFile != "" && o.cluster.get() == "":
		return leaf.BadField("WithNodeFile", o.nodeFile, "needs WithCluster: the file is read when the resolver does not answer, and may be older than a change of the cluster")
	case strings.TrimSpace(o.name) != o.name:
		return leaf.BadField("WithName", o.name, "must not begin or end with a space")
	case !o.plain && o.tls == nil:
		return leaf.BadField("WithTLS", "nil", "must be a configuration")
	case o.maxNodes < 1 || o.maxNodes > maxMaxNodes:
		return leaf.BadField("WithMaxNodes", o.maxNodes, fmt.Sprintf("must be 1 to %d", maxMaxNodes))
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
