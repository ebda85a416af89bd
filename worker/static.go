package worker

import (
	"context"
	"fmt"

	"github.com/leaf-idgen/leaf"
)

// Static is the registry of a number that the configuration gives to this node. It
// has no memory but the node's own file, so it cannot know whether another node was
// given the same number (rule L), and a node without its file waits before it
// issues: whatever its predecessor issued lies less than that in the future.
type Static struct{ number int64 }

// NewStatic returns a Static for number. Its Holder needs a Disk that outlives the process.
// It is for one Holder: two with one number repeat IDs.
func NewStatic(number int64) *Static { return &Static{number: number} }

var _ Registry = (*Static)(nil)

// Info implements Registry.
func (s *Static) Info() Info { return Info{Name: "static", Kind: Fixed} }

// Init implements Registry. There is nothing to declare.
func (s *Static) Init(context.Context, Namespace) error { return nil }

// Claim implements Registry. Without a previous claim the number may be used from
// req.QuietNow on. After one of another number it is refused: where nodes are renumbered one
// after the other, the node that had the number still runs, and no wait is long enough.
func (s *Static) Claim(_ context.Context, req Request) (Record, error) {
	if !inRange(req.Numbers, s.number) {
		return Record{}, leaf.BadField("worker-id", s.number, fmt.Sprintf("must be %d to %d", req.Numbers.Lo, req.Numbers.Hi-1))
	}
	floor := req.QuietNow()
	if p := req.Previous; p != nil {
		if p.Number != s.number {
			return Record{}, fmt.Errorf("%w: this node had the static worker ID %d until now, as %s in its data directory says, and the configuration gives it %d. "+
				"Two nodes with one number repeat IDs: set %d again, or stop every node that has %d and see that none starts with it again, compare their clocks with that of this node and wait for as long as they differ, or did before they were set right, then remove the file; "+
				"the next start waits until its last owner, by a clock like that of this node, cannot have issued any more",
				leaf.ErrConflict, p.Number, fileName, s.number, p.Number, s.number)
		}
		floor = p.Inner
	}
	return Record{Number: s.number, Address: req.Address, Nonce: req.Nonce, Floor: floor, Bound: req.BoundFor(floor), Version: "1"}, nil
}

// Renew implements Registry. The bound becomes durable in the node's own file.
func (s *Static) Renew(_ context.Context, own Record, bound int64) (Record, error) {
	own.Bound = max(own.Bound, bound)
	return own, nil
}

// Release implements Registry.
func (s *Static) Release(context.Context, Record, int64) error { return nil }

// Free implements Registry.
func (s *Static) Free(context.Context, int64) error {
	return fmt.Errorf("%w: a static worker ID is given by the configuration and cannot be released", ErrNotFound)
}

// List implements Registry.
func (s *Static) List(context.Context) ([]Record, error) {
	return []Record{{Number: s.number}}, nil
}

// Announce implements Registry: a static node has no peers.
func (s *Static) Announce(context.Context, Peer) error { return nil }

// Withdraw implements Registry.
func (s *Static) Withdraw(context.Context, Peer) error { return nil }

// Peers implements Registry.
func (s *Static) Peers(context.Context) ([]Peer, error) { return nil, nil }

// Close implements Registry.
func (s *Static) Close() error { return nil }
