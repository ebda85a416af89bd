package worker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf"
)

// NewPool makes a registry of leased numbers out of a versioned store. Any number of the
// range goes to any process, under these rules:
//
//   - A number is free if it was never used, if it was released, or if its T and the
//     margin have passed.
//   - Its next owner issues from T on; from Namespace.IssueFrom on if there is no T.
//   - If records are gone that the namespace or the claimer remembers, or the claimer's was
//     set back, IssueFrom is moved to the end of the quiet time: their owners may live.
//   - The node's own last number comes first, then the one that another program gave
//     to its address, unless a clock that was ahead has put the floor further away than
//     the margin. Then come the numbers that can be used at once, those that no node can
//     hold before those of an unclean holder, which may be alive and about to renew; of
//     the rest the ones usable soonest. Where plenty of numbers that were used before are as
//     good, none is taken that never was.
//   - A number whose T lies at the end of the layout is never taken: it has no ID left.
//   - While IssueFrom lies further ahead than Request.Latest, no number is taken: each would
//     get it as its T, and keep it when the namespace is mended.
//   - A number that another program gave to another address is never taken, nor is one
//     whose record cannot be read: nothing tells what its owner may have issued.
//
// No rule needs the clocks to agree: a node whose clock is ahead may take a number
// too early, but it starts at T all the same, and the owner finds its claim lost.
func NewPool(r Records) Registry { return pool{r} }

type pool struct{ Records }

// Init implements Registry.
func (p pool) Init(ctx context.Context, ns Namespace) error {
	stored, err := p.Namespace(ctx, nil)
	if err != nil {
		return err
	}
	if stored == nil {
		if records, err := p.Records.List(ctx); err != nil || len(records) > 0 {
			return err
		}
	}
	_, err = p.open(ctx, StoredNamespace{Namespace: ns})
	return err
}

// open returns the stored namespace, made from want if there is none.
func (p pool) open(ctx context.Context, want StoredNamespace) (*StoredNamespace, error) {
	stored, err := p.Namespace(ctx, &want)
	if err != nil {
		return nil, err
	}
	return stored, stored.Admit(want.Namespace)
}

// setLayoutBack is what to do about another layout. An epoch of its own is no cure: a later
// one repeats, from its beginning on, the IDs of the earlier one's first days.
const setLayoutBack = "IDs of two layouts or epochs can be equal: set the layout back, or give the IDs of the new one tables of their own"

// setNamespaceBack is what to do about another namespace. A registry of its own is no cure for a node whose namespace
// was changed while others are in this one.
const setNamespaceBack = "if the namespace of this node was changed, set it back: another registry gives the numbers that the nodes of this one have. Else name the registry, path or prefix of this node's environment"

// Admit returns ErrForeign, naming both sides, if a node of the namespace want may
// not use s.
func (s StoredNamespace) Admit(want Namespace) error {
	switch {
	case s.Name != want.Name:
		return fmt.Errorf("%w: it belongs to namespace %q, this node to %q; %s", ErrForeign, s.Name, want.Name, setNamespaceBack)
	case s.Fingerprint != want.Fingerprint:
		return fmt.Errorf("%w: its IDs have the layout %q, this node's %q; %s, and a new, empty registry", ErrForeign, s.Fingerprint, want.Fingerprint, setLayoutBack)
	}
	return nil
}

// Reach returns ErrAhead, with the cure, if no number of s may be used before req.Latest.
// The cure keeps the records: the T of a number that a clock of the future issued with must
// be heeded in that future.
func (s StoredNamespace) Reach(req Request, info Info) error {
	if req.Latest == 0 || s.IssueFrom <= req.Latest {
		return nil
	}
	cure := "delete the namespace of the registry and nothing of its numbers"
	if info.Reset != "" {
		cure += ": " + info.Reset
	}
	return fmt.Errorf("%w: no number of registry %s may be used before %s, because the clock of the node that wrote this moment was ahead or its horizon longer, or because the clock of this node is behind; no number is claimed until then. "+
		"If the horizon was longer before, wait, or set it back. Else set the clocks of all nodes right. If the clock of this node is right, stop all nodes of the registry and %s. The numbers then wait as after a wipe, and a number that was used in the future stays unused until its time",
		ErrAhead, info.Name, time.UnixMilli(s.IssueFrom).UTC().Format(time.RFC3339), cure)
}

// Claim implements Registry.
func (p pool) Claim(ctx context.Context, req Request) (Record, error) {
	if req.Nonce == "" {
		return Record{}, leaf.BadField("nonce", req.Nonce, "must not be empty: a free number has none")
	}
	reserved, err := p.Reserved(ctx)
	if err != nil {
		return Record{}, err
	}
	info := p.Info()
	var seen string // the version of our claim, as its last write was acknowledged
	// Each round loses only against a claim that another node completed, or a wipe, so
	// the number of rounds is bounded by the claimers, and ctx bounds all of them.
	for {
		want := StoredNamespace{Namespace: req.Namespace, IssueFrom: req.QuietNew()}
		if want.IssueFrom > 0 {
			want.Given = Unseen
		}
		ns, err := p.open(ctx, want)
		if err != nil {
			return Record{}, err
		}
		if err := ns.Reach(req, info); err != nil {
			return Record{}, err
		}
		records, err := p.Records.List(ctx)
		if err != nil {
			return Record{}, err
		}
		if next := ns.after(records, req); next != *ns {
			if err := p.Amend(ctx, *ns, next); err != nil && !errors.Is(err, ErrLost) {
				return Record{}, err
			}
			continue
		}
		r, err := choose(records, reserved, ns.IssueFrom, req)
		if err != nil {
			return Record{}, err
		}
		// No record of this namespace knows less, but one that was on its way while the
		// namespace before was wiped may.
		r.Floor = max(r.Floor, ns.IssueFrom)
		if r.Nonce == req.Nonce && !r.Released && r.Version == seen { // written by a round before
			// The namespace was read before the records: the first record of another process may hide in the count that one is gone.
			switch again, err := p.Namespace(ctx, nil); {
			case err != nil:
				return Record{}, err
			case again == nil || *again != *ns:
				continue
			}
			r.Bound, r.Incarnation = max(r.Bound, r.Floor), ns.Incarnation
			return r, nil
		}
		// The next round looks again: a number that was never used looks the same after
		// the loss of its record that came in between. What an earlier call has written is written once more. Its T may be
		// that of an owner who took the number after the claim was read, and a database shows commits that are on no standby.
		r.Bound, r.Address, r.Nonce = max(r.Bound, req.BoundFor(r.Floor)), req.Address, req.Nonce
		r.Released, r.Incarnation = false, ns.Incarnation
		switch version, err := p.Put(ctx, r); {
		case err == nil:
			seen = version
		case !errors.Is(err, ErrLost):
			return Record{}, err
		}
	}
}

// after returns the namespace as it must be now that a claimer has seen these records,
// which it read later than ns. If records are gone, so is what they knew: numbers
// without one, whose owners may live, wait as after a wipe (rule U). A record that cannot be
// read counts as gone too, or else it would hide that another one was deleted. The numbers of
// a namespace that is still Unseen wait from now on.
func (s StoredNamespace) after(records []Record, req Request) StoredNamespace {
	var have int64
	known := false // the claimer's last number has a record, and not one from before its claim
	for _, r := range records {
		if r.Number >= 0 && r.Damage == "" {
			have++
		}
		known = known || req.Previous != nil && r.Number == req.Previous.Number && (r.Damage != "" || r.Bound >= req.Previous.Bound)
	}
	switch {
	case s.Given < 0, have < s.Given:
		s.Given, s.IssueFrom = have, max(s.IssueFrom, req.QuietNow())
	case have > s.Given: // they outlived the namespace before this one, or were mended
		s.Given = have
	}
	// What the claimer's registry knew is gone, or was set back by a failover or to a backup: T only
	// grows, but for a release by its owner. This namespace was told of it if it begins at
	// that moment or later; else it is one more that stands where others were.
	if p := req.Previous; p != nil && (!known || p.Incarnation != s.Incarnation) && s.IssueFrom < p.Quiet {
		s.IssueFrom = max(req.QuietNow(), p.Quiet)
	}
	return s
}

// Renew implements Registry.
func (p pool) Renew(ctx context.Context, own Record, bound int64) (Record, error) {
	return p.rewrite(ctx, own, func(r *Record) { r.Bound = max(r.Bound, bound) })
}

// Release implements Registry.
func (p pool) Release(ctx context.Context, own Record, floor int64) error {
	_, err := p.rewrite(ctx, own, func(r *Record) { r.Bound, r.Released = min(r.Bound, floor), true })
	return err
}

// rewrite changes our own record. If its version is not the one we wrote last, an
// earlier call may have succeeded without an answer: a record that carries our nonce
// was written by us, because the nonce never left this process. A call of ours that
// is still on its way cannot undo this one: it expects a version that is gone.
func (p pool) rewrite(ctx context.Context, own Record, change func(*Record)) (Record, error) {
	for {
		next := own
		change(&next)
		version, err := p.Put(ctx, next)
		if err == nil {
			next.Version = version
			return next, nil
		}
		if !errors.Is(err, ErrLost) {
			return own, err
		}
		ns, err := p.Namespace(ctx, nil)
		if err != nil {
			return own, err
		}
		if own.Incarnation != "" && (ns == nil || ns.Incarnation != own.Incarnation) {
			return own, fmt.Errorf("%w: worker ID %d was claimed in a namespace that is gone", ErrLost, own.Number)
		}
		stored, found, err := p.find(ctx, own.Number)
		switch {
		case err != nil:
			return own, err
		case !found:
			return own, fmt.Errorf("%w: worker ID %d has no record any more", ErrLost, own.Number)
		case stored.Nonce != own.Nonce || stored.Released:
			return own, fmt.Errorf("%w: worker ID %d %s", ErrLost, own.Number, stored.holder())
		case stored.Version == own.Version:
			return own, fmt.Errorf("worker ID %d: the registry refused version %q and then showed it", own.Number, own.Version)
		}
		stored.Incarnation = own.Incarnation
		stored.Bound = max(stored.Bound, own.Bound) // a store that was rolled back must learn again what it promised
		own = stored
	}
}

func (p pool) find(ctx context.Context, number int64) (Record, bool, error) {
	records, err := p.Records.List(ctx)
	if err != nil {
		return Record{}, false, err
	}
	i := slices.IndexFunc(records, func(r Record) bool { return r.Number == number })
	if i < 0 {
		return Record{}, false, nil
	}
	return records[i], true, nil
}

// holder says in a few words which node holds the record.
func (r Record) holder() string {
	switch {
	case r.Damage != "":
		return "has a record that cannot be read: " + r.Damage
	case r.Released:
		return "was released by an operator"
	case r.Nonce == "":
		return "has no owner any more"
	}
	return fmt.Sprintf("belongs to %s now", r.Address)
}

// Free implements Registry.
func (p pool) Free(ctx context.Context, number int64) error {
	for {
		r, found, err := p.find(ctx, number)
		if err != nil {
			return err
		}
		if !found {
			return fmt.Errorf("%w: %d", ErrNotFound, number)
		}
		if r.Damage != "" {
			return fmt.Errorf("%w: the record of worker ID %d cannot be read, so it is unknown what its owner has issued; no claim takes the number: %s", leaf.ErrConflict, number, r.Damage)
		}
		r.Nonce, r.Released = "", true
		if _, err := p.Put(ctx, r); !errors.Is(err, ErrLost) {
			return err
		}
	}
}

// List implements Registry. What another program reserved and cannot be read comes after
// the registry's own record of the number, if there is one.
func (p pool) List(ctx context.Context) ([]Record, error) {
	records, err := p.Records.List(ctx)
	if err != nil {
		return nil, err
	}
	reserved, err := p.Reserved(ctx)
	for _, a := range reserved {
		if a.Damage != "" {
			records = append(records, Record{Number: a.Number, Damage: a.Damage})
		}
	}
	slices.SortStableFunc(records, func(a, b Record) int { return cmp.Compare(a.Number, b.Number) })
	return records, err
}
