package worker

import "context"

// Records is the storage of a pool: one namespace, one record per number that was
// ever claimed, and the list of running processes. It knows no rule but "write if
// no other process has written": the rules are NewPool's. The contract of Registry holds
// here too.
type Records interface {
	// Info describes the registry, without a call.
	Info() Info

	// Namespace returns what is stored, as one call wrote it: IssueFrom and Given belong
	// together. If nothing is stored, it stores want, with a new Incarnation, in one atomic
	// create-if-absent and returns what is then there. A nil want only reads; without a
	// namespace it then returns nil. Error: ErrSchema.
	Namespace(ctx context.Context, want *StoredNamespace) (*StoredNamespace, error)

	// Amend replaces IssueFrom and Given by those of next, if what is stored is exactly
	// old, in one atomic operation. Error: ErrLost.
	Amend(ctx context.Context, old, next StoredNamespace) error

	// Reserved returns numbers that must not be given to any process, such as those of
	// another program's rows, with the claims that addresses may adopt from there. One
	// entry that cannot be read has a Damage and hides no other one. A driver without any
	// returns nil, nil.
	Reserved(ctx context.Context) ([]Adoptable, error)

	// List returns all records, in any order. T of a number may be read later than its claim:
	// the version then differs from that of any other reading. A number whose claim was deleted but
	// whose T is left is among them, with an empty nonce. What cannot be read, or is of
	// a format that this version does not know, or is a claim without a T, is a record
	// with a Damage: one of them must not keep all other numbers from being claimed.
	List(ctx context.Context) ([]Record, error)

	// Put writes r if the stored record still has the version r.Version ("": there is
	// neither claim nor T), in one atomic operation, and returns the new version.
	// A version is never used twice for one number, also not after a deletion; where
	// the store cannot promise that, the driver compares the old nonce too. Claim and
	// T are two entries where the store allows it, so that deleting the claim leaves
	// T. Nothing that Put writes is ever tied to a session or a lease. If
	// r.Incarnation is not empty, the same operation fails where the namespace has
	// another one, or is gone, and with r.Version "" it adds one to Given. Error: ErrLost.
	Put(ctx context.Context, r Record) (version string, err error)

	Announce(ctx context.Context, p Peer) error
	Withdraw(ctx context.Context, p Peer) error
	Peers(ctx context.Context) ([]Peer, error)
	Close() error
}

// StoredNamespace is a namespace as it is stored.
type StoredNamespace struct {
	Namespace
	IssueFrom int64 // numbers without a T may be used from this moment on; 0: at once

	// Incarnation is random, made with the namespace: another one is another registry,
	// or what stands where one was wiped.
	Incarnation string

	// Given counts the numbers that got their first record. Fewer records than that
	// means that some are gone, and with them what was issued. A claim that creates the
	// namespace stores Unseen.
	Given int64
}

// Unseen is the Given of a namespace that a claim has created and no claim has read since.
// Its IssueFrom may be too early: while the request was on its way, other nodes may have
// used the registry, and the registry may have been wiped. The first claim that reads the
// namespace computes IssueFrom anew and amends it.
const Unseen = -1

// Adoptable is a number that another program gave to an address.
type Adoptable struct {
	Number  int64
	Address string
	Floor   int64 // from where the address may go on with it

	// Damage says why the entry cannot be read, "" if it can. No node gets its Number,
	// which is -1 where not even that can be read. It has no other field then.
	Damage string
}
