package httpd

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/idtime"
	"github.com/leaf-idgen/leaf/internal/server/accept"
	"github.com/leaf-idgen/leaf/internal/server/format"
)

// Defaults and limits of Config.
const (
	defaultMaxConns      = 10_000
	defaultHeaderTimeout = 5 * time.Second
	defaultIdleTimeout   = 60 * time.Second
	defaultWriteTimeout  = 10 * time.Second
	defaultMaxHeadBytes  = 8 << 10

	// minMaxHeadBytes: net/http reads its buffer full, 4 KiB, before it looks at a
	// limit, so a smaller one could not be kept.
	minMaxHeadBytes = 5 << 10
	maxMaxHeadBytes = 1 << 20
)

// Config is what a Server needs. Every zero value means the default.
type Config struct {
	// Access gives the issuers for what a client shows. Default: both modes are off.
	Access leaf.Access

	// Formats are the keys of opaque IDs and the templates of tags. Default: none, and a client gets numbers only.
	Formats *format.Formats

	// TLS, if it is set, is how clients are to connect; HTTP/1.1 is spoken inside. It must
	// have a certificate. A client certificate that it verifies becomes
	// leaf.Credentials.Certificate. Default: plain TCP.
	TLS *tls.Config

	// MayRead returns an error unless a client may see /cache and /db. Default: every client
	// that Access lets in may.
	MayRead func(leaf.Credentials) error

	// Cache and DB return a page of what /cache and /db show. Their context ends after
	// half of WriteTimeout. Default: 501.
	Cache func(ctx context.Context, ask PageRequest) (Page, error)
	DB    func(ctx context.Context, ask PageRequest) (Page, error)

	// Times translates between IDs of snowflake mode and time. Default: 501.
	Times idtime.Layout

	// Metrics serves GET /metrics. Default: no such route.
	Metrics http.Handler

	// Console serves all below /console/, and decides by itself who may see what. Default: no
	// such route.
	Console http.Handler

	// Ready says what /readyz answers. It must not block. Default: both modes serve.
	Ready func() leaf.Readiness

	// MaxConns limits the open connections. One more is told 503
	// (too_many_connections) and closed at once, so that a load balancer tries the
	// next node instead of waiting in the queue of the kernel. Default 10,000.
	MaxConns int

	// HeaderTimeout bounds the time from the first byte of a request (from the
	// connection's start, TLS included, for the first one) to the end of its head,
	// however the bytes trickle in. A request with a body must be complete by then too. The
	// connection is closed, without a reply if the head is not complete. Default 5 s.
	HeaderTimeout time.Duration

	// IdleTimeout is how long a connection may stay open between two requests. It
	// can be exceeded by half a second. Default 60 s.
	IdleTimeout time.Duration

	// WriteTimeout bounds how long a client may take to accept a reply; on the
	// net/http path it includes the time to make it. It can be exceeded by half a
	// second. The connection is closed. Default 10 s.
	WriteTimeout time.Duration

	// MaxHeadBytes bounds request line and header fields together; more is told
	// 431 and closed. 5 KiB to 1 MiB, default 8 KiB.
	MaxHeadBytes int

	// RequestIDs reports whether a request that brings no ID gets one now. Access finds the ID in
	// the context of each call (package requestid). It costs allocations. Default: only an internal
	// error gets one.
	RequestIDs func() bool

	// Logger gets internal errors, panics, and failures to accept. Default
	// slog.Default().
	Logger *slog.Logger
}

// WithDefaults returns c with every zero field set to its default.
func (c Config) WithDefaults() Config {
	if c.Access == nil {
		c.Access = leaf.Anyone(nil, nil)
	}
	if c.Cache == nil {
		c.Cache = notMounted("/cache")
	}
	if c.MayRead == nil {
		c.MayRead = func(leaf.Credentials) error { return nil }
	}
	if c.DB == nil {
		c.DB = notMounted("/db")
	}
	if c.Times == nil {
		c.Times = idtime.None{}
	}
	if c.Ready == nil {
		serves := leaf.ModeReadiness{Enabled: true, Ready: true}
		c.Ready = func() leaf.Readiness { return leaf.Readiness{Segment: serves, Snowflake: serves} }
	}
	c.MaxConns = cmp.Or(c.MaxConns, defaultMaxConns)
	c.HeaderTimeout = cmp.Or(c.HeaderTimeout, defaultHeaderTimeout)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, defaultIdleTimeout)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, defaultWriteTimeout)
	c.MaxHeadBytes = cmp.Or(c.MaxHeadBytes, defaultMaxHeadBytes)
	if c.RequestIDs == nil {
		c.RequestIDs = func() bool { return false }
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

func notMounted(path string) func(context.Context, PageRequest) (Page, error) {
	return func(context.Context, PageRequest) (Page, error) {
		return Page{}, fmt.Errorf("%w: %s", leaf.ErrDisabled, path)
	}
}

// Validate returns leaf.ErrBadRequest, naming field, value and limit, for the
// first field that is neither zero nor within its limits.
func (c Config) Validate() error {
	if c.MaxConns < 0 {
		return leaf.BadField("max_conns", c.MaxConns, "must be 1 or more, or 0 for the default")
	}
	err := accept.CheckTimes(
		accept.Time{Name: "header_timeout", Value: c.HeaderTimeout, Least: time.Millisecond},
		accept.Time{Name: "idle_timeout", Value: c.IdleTimeout, Least: time.Millisecond},
		accept.Time{Name: "write_timeout", Value: c.WriteTimeout, Least: time.Millisecond},
	)
	if err != nil {
		return err
	}
	if n := c.MaxHeadBytes; n != 0 && (n < minMaxHeadBytes || n > maxMaxHeadBytes) {
		return leaf.BadField("max_head_bytes", n, fmt.Sprintf("must be %d to %d, or 0 for the default", minMaxHeadBytes, maxMaxHeadBytes))
	}
	if t := c.TLS; t != nil && len(t.Certificates) == 0 && t.GetCertificate == nil && t.GetConfigForClient == nil {
		return leaf.BadField("tls", "no certificate", "must have one")
	}
	return nil
}
