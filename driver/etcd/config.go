package etcd

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
)

// Config says where the keys are.
type Config struct {
	// Endpoints are the nodes of the cluster, as host:port or URL. Several are used
	// in turn. Required.
	Endpoints []string

	// Prefix begins all keys, e.g. "/leaf/prod". It must not end in a slash. Two
	// namespaces must not share one, nor may a registry, a fence and a directory. Required.
	Prefix string

	// Username and Password, if etcd asks for them. Both or none.
	Username, Password string

	// TLS is for endpoints with https; nil: the system's defaults.
	TLS *tls.Config

	// DialTimeout bounds the building of one connection; the default is 2 s. A log-in may take
	// ten times as long. How long a caller waits is up to its context alone.
	DialTimeout time.Duration

	// Lease is how long an announcement lasts, in whole seconds, at least 2 s; the
	// default is 15 s. etcd itself may make it longer. Neither fence nor directory uses it.
	Lease time.Duration

	// Logger receives what a directory leaves out of its lists. nil: discarded. Errors
	// are returned, not logged.
	Logger *slog.Logger
}

const (
	defaultDialTimeout = 2 * time.Second
	defaultLease       = 15 * time.Second
	shortestLease      = 2 * time.Second
	longestLease       = time.Hour
)

// complete returns c with its defaults, or leaf.ErrBadRequest naming the field.
func (c Config) complete() (Config, error) {
	if c.DialTimeout == 0 {
		c.DialTimeout = defaultDialTimeout
	}
	if c.Lease == 0 {
		c.Lease = defaultLease
	}
	if len(c.Endpoints) == 0 {
		return c, leaf.BadField("etcd endpoints", "", "at least one is needed")
	}
	for _, e := range c.Endpoints {
		if strings.TrimSpace(e) == "" || strings.ContainsAny(e, ", ") {
			return c, leaf.BadField("etcd endpoint", e, "must be one host:port or URL")
		}
	}
	switch {
	case c.Prefix == "" || strings.HasSuffix(c.Prefix, "/"):
		return c, leaf.BadField("etcd prefix", c.Prefix, "must not be empty or end in a slash")
	case (c.Username == "") != (c.Password == ""):
		return c, leaf.BadField("etcd username", c.Username, "must come with a password, and a password with it")
	case c.DialTimeout < 0:
		return c, leaf.BadField("etcd dial timeout", c.DialTimeout, "must not be negative")
	case c.Lease < shortestLease || c.Lease > longestLease || c.Lease%time.Second != 0:
		return c, leaf.BadField("etcd lease", c.Lease, fmt.Sprintf("must be %v to %v in whole seconds", shortestLease, longestLease))
	}
	return c, nil
}
