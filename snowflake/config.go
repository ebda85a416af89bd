package snowflake

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

const (
	// DefaultTolerance is the step back of the clock that is waited out.
	DefaultTolerance = 5 * time.Millisecond

	// NoBound as Config.Bound lets a generator issue up to the end of its layout:
	// only for a worker ID that no other node can ever get.
	NoBound = math.MaxInt64
)

// Policy says what happens while the clock is behind by more than the tolerance.
type Policy int

const (
	// Refuse fails every call with ErrClock.
	Refuse Policy = iota

	// UseReserved goes on in the window from the position up to the bound, which
	// is reserved already, at most one unit per unit of elapsed (monotonic) time.
	// IDs then lie ahead of the clock. At the bound, calls fail with ErrBound.
	UseReserved
)

// Config says what a Generator issues. Its zero value issues nothing: it has no
// layout and no bound.
type Config struct {
	// Layout of the IDs. Required.
	Layout Layout

	// Datacenter and Worker must fit the widths of the layout. Two generators that
	// issue at the same time must differ in one of them, else they repeat IDs.
	Datacenter, Worker int64

	// Floor, in Unix milliseconds: no ID has a unit before Layout.Ceil(Floor). It
	// must be at or above the bound of any earlier generator of the same worker ID.
	// A clock below it is a clock that is behind. Values before the epoch set none.
	Floor int64

	// Bound, in Unix milliseconds: only units that start before it are issued from.
	// Values up to the epoch, such as 0, issue nothing until SetBound.
	Bound int64

	// Tolerance is how far the clock may be behind the position for a caller to
	// wait for it, at most for twice as long. Default 5 ms; negative waits for nothing.
	Tolerance time.Duration

	// Policy for a clock that is behind by more. Default Refuse.
	Policy Policy

	// Now is the wall clock; nil means time.Now, which is called directly. It must
	// be safe for concurrent use. Differences of its results should survive a step
	// of the clock (a monotonic reading); only UseReserved relies on it.
	Now func() time.Time

	// Sleep waits for d, or until ctx is done, and then returns its error; nil means
	// the real one. Every wait of the generator is a call of it, d is positive, and
	// returning early does no harm: the clock is read again.
	Sleep func(ctx context.Context, d time.Duration) error

	// Admit is asked before every wait, and its error ends the call; nil: every call may
	// wait. It must be safe for concurrent use.
	Admit func(ctx context.Context) error

	// Rand chooses where a fresh unit starts; nil means math/rand/v2. It must be
	// safe for concurrent use and uniform.
	Rand func() uint64
}

// withDefaults validates c and fills in what was left out.
func (c Config) withDefaults() (Config, error) {
	if err := c.Layout.Validate(); err != nil {
		return c, err
	}
	if err := c.Layout.fits("datacenter", c.Datacenter, c.Layout.DatacenterBits); err != nil {
		return c, err
	}
	if err := c.Layout.fits("worker", c.Worker, c.Layout.WorkerBits); err != nil {
		return c, err
	}
	if c.Layout.Ceil(c.Floor) >= c.Layout.end() {
		return c, fmt.Errorf("%w: floor=%d: must be before %d", ErrOverflow, c.Floor, c.Layout.End().UnixMilli())
	}
	if c.Policy != Refuse && c.Policy != UseReserved {
		return c, invalid("policy", int(c.Policy), "must be Refuse or UseReserved")
	}
	switch {
	case c.Tolerance == 0:
		c.Tolerance = DefaultTolerance
	case c.Tolerance < 0:
		c.Tolerance = 0
	}
	if c.Sleep == nil {
		c.Sleep = new(sleeper).sleep
	}
	if c.Rand == nil {
		c.Rand = rand.Uint64
	}
	return c, nil
}
