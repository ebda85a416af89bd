package manage

import (
	"context"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/discovery"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/worker"
)

// Info describes the node, or the command, that answers.
type Info struct {
	Version string    `json:"version"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started,omitzero"` // zero without a running node
	DataDir string    `json:"data_dir"`
	Stores  []string  `json:"stores"` // addresses without passwords
	Addresses
	Stage   string   `json:"stage,omitempty"` // "serving", or how far a stop is, in words
	Ready   bool     `json:"ready"`
	Reasons []string `json:"reasons,omitempty"` // why not ready, or what needs attention
}

// Addresses are where a node listens, "" where a server is off.
type Addresses struct {
	HTTP  string `json:"http,omitempty"`
	GRPC  string `json:"grpc,omitempty"`
	RESP  string `json:"resp,omitempty"`
	Admin string `json:"admin,omitempty"`
}

// AddressesOf returns the addresses of the protocols, which a has, and that for administration.
func AddressesOf(a discovery.Node, admin string) Addresses {
	return Addresses{a.HTTP, a.GRPC, a.RESP, admin}
}

// List returns the addresses with their names in JSON.
func (a Addresses) List() []discovery.Address {
	return append(discovery.Node{HTTP: a.HTTP, GRPC: a.GRPC, RESP: a.RESP}.Addresses(), discovery.Address{Protocol: "admin", Value: a.Admin})
}

// GetInfo describes the node or the store that answers.
type GetInfo struct{}

func (GetInfo) run(ctx context.Context, s StoreSite) (Info, error) { return s.Info(ctx) }

// Issued are IDs that an administrator has taken.
type Issued struct {
	Ranges []leaf.Range `json:"ranges"`
}

// Next issues exactly N IDs of a tag.
type Next struct {
	Tag string `query:"tag"`
	N   int    `query:"n" must:"must be 1 to 100000"`
}

func (q Next) run(ctx context.Context, i leaf.Issuer) (Issued, error) {
	ranges, err := i.NextN(ctx, q.Tag, q.N)
	return Issued{ranges}, withCause(err)
}

// NextSnowflake issues exactly N IDs of snowflake mode.
type NextSnowflake struct {
	N int `query:"n" must:"must be 1 to 100000"`
}

func (q NextSnowflake) run(ctx context.Context, i leaf.Issuer) (Issued, error) {
	ranges, err := i.NextN(ctx, "", q.N)
	return Issued{ranges}, withCause(err)
}

func (q Next) validate() error          { return checkCount(q.N) }
func (q NextSnowflake) validate() error { return checkCount(q.N) }

func checkCount(n int) error {
	if n < 1 || n > leaf.MaxBatch {
		return leaf.BadField("n", n, fmt.Sprintf("must be 1 to %d", leaf.MaxBatch))
	}
	return nil
}

// withCause adds to an error of an engine what it hides from clients.
func withCause(err error) error {
	for _, cause := range []error{segment.Cause(err), worker.Cause(err)} {
		if cause != nil {
			return fmt.Errorf("%w: %w", err, cause)
		}
	}
	return err
}

// ClockReply is the time that a node believes.
type ClockReply struct {
	Now time.Time `json:"now"`
}

// ConfirmClock tells the node that its wall clock is right after a jump, and returns the
// time that is now believed. Error: leaf.ErrClock if no ID can have that time.
type ConfirmClock struct{}

func (ConfirmClock) run(_ context.Context, s NodeSite) (ClockReply, error) {
	now, err := s.ConfirmClock()
	return ClockReply{now}, err
}

// MaxDrainDelay is the longest delay of a drain.
const MaxDrainDelay = 10 * time.Minute

// Drain begins to stop the node and returns at once: the node says that it is not
// ready and leaves the list of nodes, serves for the delay, 0 to MaxDrainDelay,
// ends its connections, returns unused IDs, and its process ends. Info.Stage
// says how far it is. A negative delay is the node's own, drain-delay. Further
// calls change nothing. Error: leaf.ErrBadRequest.
type Drain struct {
	Delay time.Duration // below 0: drain-delay
}

func (q Drain) validate() error {
	if q.Delay > MaxDrainDelay {
		return leaf.BadField("delay", q.Delay, "must be at most 10m")
	}
	return nil
}

func (q Drain) run(_ context.Context, s NodeSite) (None, error) {
	if err := q.validate(); err != nil {
		return None{}, err
	}
	s.Drain(q.Delay)
	return None{}, nil
}
