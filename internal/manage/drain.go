package manage

import (
	"context"
	"time"

	"github.com/leaf-idgen/leaf"
)

// MaxDrainDelay is the longest delay of a drain.
const MaxDrainDelay = 10 * time.Minute

// Drainer is what a node can do to leave its cluster.
type Drainer interface {
	// Drain begins to stop the node and returns at once: the node says that it is not
	// ready and leaves the list of nodes, serves for the delay, 0 to MaxDrainDelay,
	// ends its connections, gives unused IDs back, and its process ends. Info.Stage
	// tells how far it is. A negative delay is the node's own, drain-delay. Further
	// calls change nothing. Error: leaf.ErrBadRequest.
	Drain(ctx context.Context, delay time.Duration) error
}

// CheckDrainDelay returns leaf.ErrBadRequest if Drain may not be called with delay.
func CheckDrainDelay(delay time.Duration) error {
	if delay > MaxDrainDelay {
		return leaf.BadField("delay", delay, "must be at most 10m")
	}
	return nil
}
