package fence

import (
	"context"
	"errors"
	"fmt"

	"github.com/leaf-idgen/leaf"
)

// Errors of a Cluster.
var (
	// ErrMoved: the entry is not what the caller believes it to be. Nothing was
	// changed. It is no fault: another node was faster.
	ErrMoved = errors.New("fence: the cluster fence has moved")

	// ErrReplaced: the namespace is not, or no longer, the one that the caller
	// names. It was wiped, perhaps created anew. Nothing was changed.
	ErrReplaced = errors.New("fence: the cluster fence was replaced")
)

// Entry is what the cluster fence holds of one tag.
type Entry struct {
	End int64 // the end of the ranges that nodes took under this fence; 0 to MaxEnd

	// Version is the store's own number of this state of the entry. It is larger after
	// every Swap of the tag and never used again for it within the incarnation
	// (ZooKeeper: the data version of the znode; etcd: the mod revision of the key).
	Version int64
}

// Cluster is a second store, beside the databases, that all nodes share. It
// holds per tag the highest end of a range that any node reserved, so that a node
// refuses a range that another one reserved before the database lost commits (spec
// guarantee 2, rule C; docs/adr/0010). The engine owns this interface; drivers
// implement it and prove it with drivertest.RunClusterFence.
//
// The entries live in a namespace. The call that creates the namespace gives it an
// incarnation, a random text that is never used twice, in the same atomic step.
// All other methods name the incarnation they mean (space), and must never touch or
// answer for another one: a store that was wiped, or wiped and filled again, is
// ErrReplaced. (A layout that makes this easy: the incarnation is part of the
// path of every entry.) An entry is never deleted by a driver, and the namespace
// has no lease.
//
// Contract for every method: safe for concurrent use; honours ctx, whose deadline
// the engine always sets; a call that is not answered is any error but the two
// above, after which the outcome of a Swap is unknown. A Swap may then have
// happened, may happen later, and may happen only once: it is conditional on a
// version that never comes back, so sending it twice is harmless, but its second
// sending returns ErrMoved where the first one succeeded, and the range is
// lost. Tags are those that leaf.ValidateTag accepts, compared byte by byte: "/",
// ".", "..", spaces, control characters and upper case are part of the name, so
// names must be escaped. An invalid tag or end is leaf.ErrBadRequest.
type Cluster interface {
	// Open returns the incarnation of the namespace, and creates the namespace if there
	// is none; created says that this call did. Of several nodes that find none at
	// the same moment one creates it and all return the same incarnation. It may be
	// repeated at any time, changes nothing that exists, and never returns an
	// incarnation whose entries were lost as a whole: what is left of one is
	// replaced by a new one.
	//
	// Open is also the engine's probe after a failure: it succeeds only if the store
	// answers now. (Whether it also writes, the engine finds out with a Swap of an entry
	// of its own, named "\x01leaf-probe".)
	Open(ctx context.Context) (space string, created bool, err error)

	// Identify returns the ID of the cluster whose nodes use the namespace, "" if it has none. Where it has none it
	// records id first, unless id is "": of several nodes that do so at the same moment one succeeds, and all return
	// its ID. The ID ends with the incarnation. A client without the right to it may find none. Error: ErrReplaced.
	Identify(ctx context.Context, space, id string) (found string, err error)

	// Read returns the entry of a tag. ok is false if the namespace, which is still
	// space, has none; that is not an entry with End 0. The answer is no older than
	// the call (ZooKeeper: sync first), so it includes every Swap that was
	// acknowledged to any node before. Error: ErrReplaced.
	Read(ctx context.Context, space, tag string) (e Entry, ok bool, err error)

	// Swap sets the entry to end in one atomic compare-and-set and returns the new
	// entry: from exactly old, version and end (a store that was restored may count
	// versions anew), or, with old nil, only if there is no entry. end may be lower than
	// or equal to old.End. A nil error means that the store has it durably. Errors:
	// ErrMoved if the entry is another or missing or, with old nil, exists;
	// ErrReplaced, in place of which ErrMoved is allowed where a driver
	// cannot tell, since the next Read does.
	Swap(ctx context.Context, space, tag string, old *Entry, end int64) (Entry, error)
}

// CheckEntry returns leaf.ErrBadRequest if tag or end cannot be part of an entry.
// Drivers call it before they touch the store.
func CheckEntry(tag string, end int64) error {
	if err := leaf.ValidateTag(tag); err != nil {
		return err
	}
	if end < 0 || end > MaxEnd {
		return leaf.BadField("end", end, fmt.Sprintf("must be 0 to %d", int64(MaxEnd)))
	}
	return nil
}
