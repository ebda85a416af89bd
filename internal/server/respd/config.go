package respd

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
	defaultMaxConns        = 10_000
	defaultMaxRequestBytes = 64 << 10
	defaultRequestTimeout  = 5 * time.Second
	defaultIdleTimeout     = 30 * time.Minute
	defaultWriteTimeout    = 10 * time.Second

	minMaxRequestBytes = 1 << 10
	maxMaxRequestBytes = 1 << 20

	// loginTime bounds how long a client that must authenticate may take, whatever else
	// it sends: strangers shall not fill the table of connections.
	loginTime = time.Minute
)

// Config is what a Server needs. Every zero value means the default.
type Config struct {
	// Access gives the issuers to a client. AUTH and HELLO AUTH ask it with the
	// password as Credentials.Token; the user name, unless it is "default", and else
	// what CLIENT SETNAME says, is Credentials.Name. Default: both modes disabled.
	Access leaf.Access

	// Formats are the keys of opaque IDs and the templates of tags. Default: none, and a client gets numbers only.
	Formats *format.Formats

	// Times takes an ID of snowflake mode apart, for LEAF.DECODE. Default: leaf.ErrDisabled.
	Times idtime.Layout

	// TLS makes every connection a TLS connection. nil: none is.
	TLS *tls.Config

	// Version is what INFO calls leaf_version. Default "unknown".
	Version string

	// MaxConns limits the open connections. One more is told "-ERR max number of clients
	// reached" and closed at once. Default 10,000.
	MaxConns int

	// MaxRequestBytes bounds a request with all its arguments; more is told so and
	// closed. A connection's two buffers grow to about this size each if the client
	// makes use of it. 1 KiB to 1 MiB, default 64 KiB.
	MaxRequestBytes int

	// RequestTimeout bounds the time from the first byte of a request to its last,
	// however the bytes trickle in, and a TLS handshake. The connection is closed.
	// Default 5 s.
	RequestTimeout time.Duration

	// IdleTimeout is how long a connection may stay open between two requests. It can
	// be exceeded by half a second. Pools of clients keep idle connections, and some
	// treat their end as a failure, so the default is long: 30 min. A client that must
	// authenticate and has not has a minute, if that is less.
	IdleTimeout time.Duration

	// WriteTimeout bounds how long a client may take to accept 64 KiB of replies. It
	// can be exceeded by half a second. The connection is closed. Default 10 s.
	WriteTimeout time.Duration

	// Logger gets internal errors, panics, and failures to accept. Default
	// slog.Default().
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
	c.Version = cmp.Or(c.Version, "unknown")
	c.MaxConns = cmp.Or(c.MaxConns, defaultMaxConns)
	c.MaxRequestBytes = cmp.Or(c.MaxRequestBytes, defaultMaxRequestBytes)
	c.RequestTimeout = cmp.Or(c.RequestTimeout, defaultRequestTimeout)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, defaultIdleTimeout)
	c.WriteTimeout = cmp.Or(c.WriteTimeout, defaultWriteTimeout)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// Validate returns leaf.ErrBadRequest, naming field, value and limit, for the first
// field that is neither zero nor within its limits.
func (c Config) Validate() error {
	if c.MaxConns < 0 {
		return leaf.BadField("max_conns", c.MaxConns, "must be 1 or more, or 0 for the default")
	}
	err := accept.CheckTimes(
		accept.Time{Name: "request_timeout", Value: c.RequestTimeout, Least: time.Millisecond},
		accept.Time{Name: "idle_timeout", Value: c.IdleTimeout, Least: time.Millisecond},
		accept.Time{Name: "write_timeout", Value: c.WriteTimeout, Least: time.Millisecond},
	)
	if err != nil {
		return err
	}
	if n := c.MaxRequestBytes; n != 0 && (n < minMaxRequestBytes || n > maxMaxRequestBytes) {
		return leaf.BadField("max_request_bytes", n, fmt.Sprintf("must be %d to %d, or 0 for the default", minMaxRequestBytes, maxMaxRequestBytes))
	}
	return nil
}
