package discovery

import (
	"context"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
)

// Directory is where nodes publish themselves. Drivers implement it; the suite in
// driver/drivertest is its specification.
//
// All methods are safe for concurrent use and end with ctx. An error without a class
// (leaf.ClassOf) means that the registry did not answer; a retry may help.
type Directory interface {
	// Put publishes n under its ID, in place of an earlier entry, for ttl: 1 s to 1 h
	// by the clock of the registry. A registry of sessions (ZooKeeper) takes the session
	// of this connection for it, which ends some seconds after its process; one whose
	// times have a lower limit (etcd) may round a short ttl up. A nil error means that
	// List of every client shows it from now on. A call that failed may have taken
	// effect. Error: leaf.ErrBadRequest for a node or a ttl outside its limits.
	Put(ctx context.Context, n Node, ttl time.Duration) error

	// Remove takes the entry of the node with this ID out. That there is none is no
	// error. Error: leaf.ErrBadRequest for what cannot be an ID.
	Remove(ctx context.Context, id string) error

	// List returns the nodes whose time has not run out, ordered by ID. An empty list
	// is not an error.
	List(ctx context.Context) ([]Node, error)

	// Close ends the connection, and in a registry of sessions the entries with it. It
	// may be repeated. Other calls fail after it.
	Close() error
}

// Limits of the ttl of an entry.
const (
	MinTTL = time.Second
	MaxTTL = time.Hour
)

// CheckPut returns leaf.ErrBadRequest if n or ttl is outside its limits. Drivers call
// it before anything else.
func CheckPut(n Node, ttl time.Duration) error {
	if ttl < MinTTL || ttl > MaxTTL {
		return leaf.BadField("ttl", ttl, fmt.Sprintf("must be %v to %v", MinTTL, MaxTTL))
	}
	return n.Validate()
}
