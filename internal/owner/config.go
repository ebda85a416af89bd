package owner

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/leaf-idgen/leaf"
)

// Limits of a Config.
const (
	MaxSlots = 1024
	MaxLease = time.Minute
	MinLease = 500 * time.Millisecond

	maxWeight = 1000
)

// Config configures Slots.
type Config struct {
	Address   string        // how other nodes and clients reach this node; required
	Namespace string        // label of the environment, as of worker IDs; required
	Database  string        // name of the database that has the records, in alarms; "": there is only one
	Slots     int           // of the cluster, the same on all nodes; default 64, 1 to MaxSlots
	Lease     time.Duration // how long a term outlives its last renewal; default 2 s, MinLease to MaxLease

	// Weight returns this node's share beside the others', 0 to 1000: 0 gives its slots to other nodes.
	// It is asked before each renewal. nil: 100.
	Weight func() int

	// Elapsed returns the time since some fixed moment, which no clock step changes. Without the
	// time for which the machine was suspended, terms outlive their lease by that. Required.
	Elapsed func() time.Duration

	Runtime leaf.Runtime // nil: leaf.SystemRuntime
	Logger  *slog.Logger // nil: none
	Alarms  leaf.Alarms  // nil: none
}

// WithDefaults returns c with defaults for what is not set.
func (c Config) WithDefaults() Config {
	c.Slots = cmp.Or(c.Slots, 64)
	c.Lease = cmp.Or(c.Lease, 2*time.Second)
	if c.Weight == nil {
		c.Weight = func() int { return 100 }
	}
	if c.Runtime == nil {
		c.Runtime = leaf.SystemRuntime()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Alarms == nil {
		c.Alarms = leaf.NoAlarms()
	}
	return c
}

// Validate returns leaf.ErrBadRequest if a field is outside its limits.
func (c Config) Validate() error {
	switch {
	case c.Address == "":
		return leaf.BadField("address", c.Address, "must not be empty")
	case c.Namespace == "":
		return leaf.BadField("namespace", c.Namespace, "must not be empty")
	case c.Slots < 1 || c.Slots > MaxSlots:
		return leaf.BadField("slots", c.Slots, fmt.Sprintf("must be 1 to %d", MaxSlots))
	case c.Lease < MinLease || c.Lease > MaxLease:
		return leaf.BadField("lease", c.Lease, fmt.Sprintf("must be %v to %v", MinLease, MaxLease))
	case c.Elapsed == nil:
		return leaf.BadField("elapsed", "nil", "must be set")
	}
	return nil
}

// every is the pause between two renewals: one may fail, and the next one still comes in time.
func (c Config) every() time.Duration { return c.Lease / 4 }

// margin is what a node waits beyond the lease of another: what two clocks may drift apart in a lease, amply.
func margin(lease time.Duration) time.Duration { return lease / 10 }

// weight is what Weight returns, within its limits.
func (c Config) weight() int64 { return int64(min(max(c.Weight(), 0), maxWeight)) }
