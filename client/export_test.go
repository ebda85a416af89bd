package client

import (
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/internal/answers"
)

// The seam below the flights, for nodes that live in a bubble.
type (
	Link    = link
	Request = request
)

// ErrNotServing is what Check says of a node that drains.
var ErrNotServing = errNotServing

// ErrGivenUp is the end of a request that the client itself has cut off.
var ErrGivenUp = errGivenUp

// WithLinks replaces gRPC.
func WithLinks(dial func(discovery.Node) (Link, error)) Option {
	return func(o *options) { o.dial = dial }
}

// Broken is the error of a request without an answer.
func Broken(cause error) error { return &brokenError{cause: cause} }

// Answered is the error that a node gave.
var Answered = answers.Error

// Options is several options as one.
func Options(all ...Option) Option {
	return func(o *options) {
		for _, option := range all {
			option(o)
		}
	}
}

// ParseNodes reads a node file.
var ParseNodes = parseNodes

// Lanes returns how many lanes are kept.
func (c *Client) Lanes() (n int) {
	for i := range c.lanes {
		c.lanes[i].Range(func(any, any) bool { n++; return true })
	}
	return n
}

// Preferred returns the keys of the list, ID and address, in the order in which a client
// with that seed prefers them.
func Preferred(seed uint64, size int, zone string, list []discovery.Node) (keys []string) {
	var entries []*listing
	for _, n := range list {
		entries = append(entries, &listing{key: n.ID + " " + n.GRPC, info: n})
	}
	subset{seed: seed, size: size, zone: zone}.sort(entries)
	for _, e := range entries {
		keys = append(keys, e.key)
	}
	return keys
}

// WatchOpening watches the opening of a stream whose connection is in use until free is
// called.
func WatchOpening() (end, free func()) {
	l := &grpcLink{}
	c := &conn{link: l}
	l.mu.Lock()
	return c.watchOpening(), l.mu.Unlock
}

// OpenTime is how long the opening of a stream may take.
const OpenTime = openTime
