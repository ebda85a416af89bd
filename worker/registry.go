package worker

import (
	"context"
	"fmt"
	"slices"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/snowflake"
)

// Kind says what a claim is tied to.
type Kind int

const (
	// Leased numbers go to any node that asks. A node that lost contact may use its
	// number until T, and a restarted one needs the registry.
	Leased Kind = iota

	// Fixed numbers belong to an identity, such as ip:port or a number in the
	// configuration. Such a node may restart from its own file while the registry
	// is down, below the T that the file holds (rule E).
	Fixed
)

// String returns "leased" or "fixed".
func (k Kind) String() string {
	if k == Fixed {
		return "fixed"
	}
	return "leased"
}

// Info describes a registry.
type Info struct {
	Name   string // e.g. "etcd", for messages and alarms
	Kind   Kind
	Shared bool // other machines use it too, so that a loopback address would be ambiguous

	// Place is where the registry lies on its servers, such as a path, and Servers are
	// their addresses, with commas between: a node's file is of this registry only if
	// the first is equal and one of the second is the same. "" where there is none.
	Place, Servers string

	// Reset is the command by which an administrator deletes the namespace and nothing of
	// the numbers, for texts; "" where there is none.
	Reset string
}

// Namespace is what all nodes that share a registry must agree on. Use NewNamespace.
type Namespace struct {
	Name        string // label of the environment, e.g. "prod"; 1 to 64 characters
	Fingerprint string // of layout, epoch and datacentre
}

// NewNamespace returns the namespace of a node whose IDs have this layout and, if the
// layout has that field, this datacentre: a number of one datacentre says nothing about
// the same number of another.
func NewNamespace(name string, layout snowflake.Layout, datacenter int64) Namespace {
	fingerprint := layout.Fingerprint()
	if layout.DatacenterBits > 0 {
		fingerprint += fmt.Sprintf(" datacenter=%d", datacenter)
	}
	return Namespace{Name: name, Fingerprint: fingerprint}
}

// Registry hands out worker IDs. The engine owns this interface; drivers implement
// it and prove it with drivertest.
//
// Contract for every method: safe for concurrent use; returns soon after ctx ends
// (the engine always sets a deadline); returns an error that matches one sentinel of
// this package where one is named, and any other error when the registry could not
// be reached or did not answer, after which the outcome of a write is unknown. All
// moments are Unix milliseconds. A connection is opened by the first call that needs
// one and re-opened by itself.
type Registry interface {
	// Info describes the registry, without a call.
	Info() Info

	// Init declares the namespace new: numbers without a T were never used, and the
	// first claimer need not wait. It does nothing if the namespace exists with the
	// same name and fingerprint, or if there is none and there are records: a registry that
	// was used has lost it, or an administrator has deleted it so that all numbers wait.
	// A program that calls it at each start repeats IDs where the registry was wiped, as with
	// Config.Fresh: leave it to leaf worker init. Error: ErrForeign, ErrSchema.
	Init(ctx context.Context, ns Namespace) error

	// Claim takes a number for req.Nonce in one atomic operation. It may be repeated
	// after an unknown outcome, with the same nonce: a claim that this nonce made is
	// then returned with the Floor it was made with. Errors: ErrTaken, ErrDamaged, ErrFull,
	// ErrForeign, ErrSchema, ErrAhead, leaf.ErrBadRequest if the address cannot be recorded.
	Claim(ctx context.Context, req Request) (Record, error)

	// Renew raises T to bound, or leaves it if bound is not higher, provided that
	// the stored record is exactly own, what this process wrote last, and returns the
	// record as it is now. After an unknown outcome it may be repeated with the same
	// own: a stored record with its nonce, not released, was written by this process.
	// Error: ErrLost.
	Renew(ctx context.Context, own Record, bound int64) (Record, error)

	// Release gives the number back and sets T to floor, which may be lower than T:
	// nothing at or above floor was issued and nothing will be. The caller has
	// stopped for good. Error: ErrLost.
	Release(ctx context.Context, own Record, floor int64) error

	// Free is the operator's release of a node's number: T stays, the nonce goes,
	// and the owner, if it lives, finds its claim lost. Errors: ErrNotFound, and
	// leaf.ErrConflict if the record cannot be read.
	Free(ctx context.Context, number int64) error

	// List returns all records, by number.
	List(ctx context.Context) ([]Record, error)

	// Announce makes this process visible to Peers for at least one lease from now on,
	// and is called again long before it ends. Withdraw ends it.
	Announce(ctx context.Context, p Peer) error
	Withdraw(ctx context.Context, p Peer) error

	// Peers returns the processes that are announced, the caller's own included.
	Peers(ctx context.Context) ([]Peer, error)

	// Close ends the connections.
	Close() error
}

// Request is what a claimer asks for.
type Request struct {
	Namespace Namespace
	Address   string     // identity of the node, "ip:port"
	Nonce     string     // of this process, for this claim; random
	Numbers   leaf.Range // which worker IDs may be taken
	Now       int64      // wall clock before the call
	Bound     int64      // T to record, if the clock is not below the floor
	Margin    int64      // how long after T an unclean holder's number returns, in ms
	Latest    int64      // a namespace whose numbers may be used only after this moment is refused; 0: none is
	End       int64      // of the layout: a number that may be used only from then on is not given; 0: none
	Quiet     int64      // moment by which every node has stopped that could issue at Now; 0: there was none. A registry reads QuietNow
	Fresh     bool       // the registry was never used, as Config.Fresh: a namespace that the claim makes need not wait. Records that are gone do
	Previous  *Previous  // what this node's file says about its last claim; nil if nothing

	// QuietLater returns Quiet as it is at the time of the call, by a clock that also
	// counts while the machine is suspended; nil: it has not moved.
	QuietLater func() int64
}

// QuietNow returns the moment from which on numbers without a T may be used if the
// registry has just been found without records. The deadline of a claim does not run
// while its machine is suspended, so a registry may be wiped minutes after the claim
// began.
func (r Request) QuietNow() int64 {
	if r.Quiet == 0 || r.QuietLater == nil {
		return r.Quiet
	}
	return r.QuietLater()
}

// QuietNew is QuietNow for a namespace that the claim makes.
func (r Request) QuietNew() int64 {
	if r.Fresh {
		return 0
	}
	return r.QuietNow()
}

// BoundFor returns the T to record with a claim that may issue from floor on. T is
// not raised while the clock is below the floor (rule F).
func (r Request) BoundFor(floor int64) int64 {
	if r.Now < floor {
		return floor
	}
	return max(floor, r.Bound)
}

// Previous is the claim that this data directory held last. The directory's lock
// proves that its process is gone.
type Previous struct {
	Number int64
	Nonce  string
	Inner  int64 // t: nothing at or above it was issued

	// Bound is the T that the registry has recorded for the claim, as far as this node knows. A record
	// of the number with a lower T was set back with its registry. 0: unknown.
	Bound int64

	// Asked are nonces under which the registry may have recorded the claim in place of
	// Nonce, because no answer has come.
	Asked []string

	// Incarnation is that of the namespace in which it was made, "" if unknown.
	Incarnation string

	// Quiet is the moment by which every node has stopped that could still issue when
	// the claim was found lost (rule U). Numbers of a namespace that has no record of it
	// may be used from then on, or from Request.Quiet on where no claimer has told that
	// namespace of the loss yet. 0: unknown.
	Quiet int64
}

// Made reports whether a record with this nonce is the claim.
func (p *Previous) Made(nonce string) bool {
	return nonce != "" && (nonce == p.Nonce || slices.Contains(p.Asked, nonce))
}

// Record is what a registry knows about a number. A claim is the record that its
// owner wrote last.
type Record struct {
	Number   int64
	Address  string // of the last owner
	Nonce    string // of the last owner; "" if an operator took it away, or only T is left
	Floor    int64  // where the last owner began; since its last renewal its t, below which no file of it that is current lies
	Bound    int64  // T: the last owner issues nothing at or above
	Released bool   // by its owner or an operator
	Version  string // "" if there is no record; only the registry reads it

	// Damage says why the record cannot be read, "" if it can. Such a record has no
	// other field but Number, -1 where not even that can be read, and no claim takes
	// the number. Only List returns it.
	Damage string
	// Incarnation is that of the namespace in which a claim was made. List leaves it empty.
	Incarnation string
	// After is the address of the last owner if Floor stems from that owner and not from the
	// namespace, for texts. Only Claim sets it, and only where the number belongs to an identity.
	After string
}

// Peer is an announced process.
type Peer struct {
	Address string // identity, "ip:port"
	Clock   string // host:port of the HTTP server that tells its time, after Doubtful if it does not trust its clock itself
	Nonce   string // of its claim
	Number  int64
}

// Doubtful begins the Clock of a peer whose clock has jumped or is behind. Only a node
// whose own clock has jumped asks it: if all have jumped alike, they confirm each other.
const Doubtful = "?"
