package discovery

import (
	"context"
	"time"
)

// Node is what a node tells its clients. Addresses are HOST:PORT as clients reach
// them, "" where the protocol is off.
type Node struct {
	ID     string `json:"id"`             // of the node's data directory: the same after a restart
	Zone   string `json:"zone,omitempty"` // datacentre or the like; "" if there is but one
	Weight int    `json:"weight"`         // share of the traffic relative to other nodes, 0 to MaxWeight; 0: only if no other node answers
	HTTP   string `json:"http,omitempty"`
	GRPC   string `json:"grpc,omitempty"`
	RESP   string `json:"resp,omitempty"`
}

// Limits and default of a Node.
const (
	MaxWeight     = 1000
	DefaultWeight = 100
	MaxNameLen    = 64 // of ID and zone, in bytes
)

// Directory is where nodes publish themselves. Drivers implement it; the suite in
// driver/drivertest is its specification.
//
// All methods are safe for concurrent use and end with ctx. An error without a class
// (leaf.ClassOf) means that the registry did not answer; a retry may help.
type Directory interface {
	// Put publishes n under its ID, in place of an earlier entry, for ttl: 1 s to 1 h
	// by the clock of the registry, where it has one. A nil error means that List of
	// every client shows it from now on. A call that failed may have taken effect.
	// Error: leaf.ErrBadRequest for a node or a ttl outside its limits.
	Put(ctx context.Context, n Node, ttl time.Duration) error

	// Remove takes the entry of the node with this ID out. That there is none is no
	// error.
	Remove(ctx context.Context, id string) error

	// List returns the nodes whose time has not run out, ordered by ID. An empty list
	// is not an error.
	List(ctx context.Context) ([]Node, error)

	// Close ends the connection, not the entries. It may be repeated.
	Close() error
}
