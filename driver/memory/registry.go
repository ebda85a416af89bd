package memory

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"

	"github.com/leaf-idgen/leaf/worker"
)

// Registry is the storage of a pool of worker IDs in memory, shared by all processes
// that Open it. Use NewRegistry; worker.NewPool makes a worker.Registry of each handle.
// All methods are safe for concurrent use and never block. Nothing survives the
// process, and announcements last until their handle is closed.
//
// DeleteClaim, Forget, Rename, Overwrite, Garble, Wipe and Backup act past the
// rules, as an operator or an
// accident would.
type Registry struct {
	mu        sync.Mutex
	namespace *worker.StoredNamespace
	claims    map[int64]claimEntry
	bounds    map[int64]boundEntry
	peers     map[worker.Peer]*Records
	writes    int64 // so far; each gives its entries a version that no other has
}

// claimEntry and boundEntry are apart, so that T outlives a claim.
type claimEntry struct {
	worker.Record // but its Bound and Version

	version int64
}

type boundEntry struct{ bound, version int64 }

// NewRegistry returns an empty registry without a namespace.
func NewRegistry() *Registry {
	r := &Registry{}
	r.Wipe()
	return r
}

// Open returns a handle, as one process has it.
func (r *Registry) Open() *Records { return &Records{registry: r} }

// Wipe deletes everything. Versions go on, so none is used twice.
func (r *Registry) Wipe() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.namespace = nil
	r.claims, r.bounds, r.peers = map[int64]claimEntry{}, map[int64]boundEntry{}, map[worker.Peer]*Records{}
}

// DeleteClaim deletes the claim of a number, but not its T.
func (r *Registry) DeleteClaim(number int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.claims, number)
}

// Forget deletes all records, claims and T, but not the namespace.
func (r *Registry) Forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.claims, r.bounds = map[int64]claimEntry{}, map[int64]boundEntry{}
}

// Rename deletes the namespace, but no record.
func (r *Registry) Rename() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.namespace = nil
}

// Overwrite puts another nonce into the claim of a number, and leaves its T.
func (r *Registry) Overwrite(number int64, nonce string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes++
	c := r.claims[number]
	c.Number, c.Nonce, c.version = number, nonce, r.writes
	r.claims[number] = c
}

// Garble makes the record of a number unreadable.
func (r *Registry) Garble(number int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes++
	r.claims[number] = claimEntry{worker.Record{Number: number, Damage: "it was garbled"}, r.writes}
}

// Backup returns a function that sets claims, bounds and namespace back to what they
// are now. Versions go on, so that none of later writes is used again.
func (r *Registry) Backup() (restore func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	namespace, claims, bounds := r.namespace, maps.Clone(r.claims), maps.Clone(r.bounds)
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.namespace, r.claims, r.bounds = namespace, maps.Clone(claims), maps.Clone(bounds)
	}
}

// versionLocked returns the version of a number, "" if it has neither claim nor T.
func (r *Registry) versionLocked(number int64) string {
	c, b := r.claims[number].version, r.bounds[number].version
	if c == 0 && b == 0 {
		return ""
	}
	return strconv.FormatInt(c, 10) + "/" + strconv.FormatInt(b, 10)
}

// Records is one process's handle on a Registry. It implements worker.Records.
type Records struct{ registry *Registry }

var _ worker.Records = (*Records)(nil)

// Info implements worker.Records.
func (*Records) Info() worker.Info { return worker.Info{Name: "memory", Kind: worker.Leased} }

// Namespace implements worker.Records.
func (h *Records) Namespace(ctx context.Context, want *worker.StoredNamespace) (ns *worker.StoredNamespace, err error) {
	err = h.do(ctx, "namespace", func(r *Registry) error {
		if r.namespace == nil && want != nil {
			r.writes++
			created := *want
			created.Incarnation = "incarnation " + strconv.FormatInt(r.writes, 10)
			r.namespace = &created
		}
		if r.namespace != nil {
			found := *r.namespace
			ns = &found
		}
		return nil
	})
	return ns, err
}

// Amend implements worker.Records.
func (h *Records) Amend(ctx context.Context, old, next worker.StoredNamespace) error {
	return h.do(ctx, "amend", func(r *Registry) error {
		if r.namespace == nil || *r.namespace != old {
			return fmt.Errorf("%w: the namespace has changed", worker.ErrLost)
		}
		amended := old
		amended.IssueFrom, amended.Given = next.IssueFrom, next.Given
		r.namespace = &amended
		return nil
	})
}

// Reserved implements worker.Records: there is no other program.
func (h *Records) Reserved(ctx context.Context) ([]worker.Adoptable, error) {
	return nil, h.do(ctx, "reserved", func(*Registry) error { return nil })
}

// List implements worker.Records.
func (h *Records) List(ctx context.Context) (records []worker.Record, err error) {
	err = h.do(ctx, "list", func(r *Registry) error {
		numbers := map[int64]bool{}
		for n := range r.claims {
			numbers[n] = true
		}
		for n := range r.bounds {
			numbers[n] = true
		}
		for n := range numbers {
			record := r.claims[n].Record
			if record.Damage == "" {
				record.Number, record.Bound, record.Version = n, r.bounds[n].bound, r.versionLocked(n)
			}
			records = append(records, record)
		}
		return nil
	})
	return records, err
}

// Put implements worker.Records.
func (h *Records) Put(ctx context.Context, record worker.Record) (version string, err error) {
	err = h.do(ctx, "put", func(r *Registry) error {
		if have := r.versionLocked(record.Number); have != record.Version {
			return fmt.Errorf("%w: worker ID %d has version %q, not %q", worker.ErrLost, record.Number, have, record.Version)
		}
		if record.Incarnation != "" {
			if r.namespace == nil || r.namespace.Incarnation != record.Incarnation {
				return fmt.Errorf("%w: the namespace was deleted or replaced", worker.ErrLost)
			}
			if record.Version == "" {
				given := *r.namespace
				given.Given++
				r.namespace = &given
			}
			record.Incarnation = ""
		}
		r.writes++
		r.claims[record.Number] = claimEntry{record, r.writes}
		r.bounds[record.Number] = boundEntry{record.Bound, r.writes}
		version = r.versionLocked(record.Number)
		return nil
	})
	return version, err
}

// Announce implements worker.Records.
func (h *Records) Announce(ctx context.Context, p worker.Peer) error {
	return h.do(ctx, "announce", func(r *Registry) error {
		r.withdrawLocked(p)
		r.peers[p] = h
		return nil
	})
}

// Withdraw implements worker.Records.
func (h *Records) Withdraw(ctx context.Context, p worker.Peer) error {
	return h.do(ctx, "withdraw", func(r *Registry) error {
		r.withdrawLocked(p)
		return nil
	})
}

func (r *Registry) withdrawLocked(p worker.Peer) {
	for other := range r.peers {
		if other.Nonce == p.Nonce {
			delete(r.peers, other)
		}
	}
}

// Peers implements worker.Records.
func (h *Records) Peers(ctx context.Context) (peers []worker.Peer, err error) {
	err = h.do(ctx, "peers", func(r *Registry) error {
		for p := range r.peers {
			peers = append(peers, p)
		}
		return nil
	})
	return peers, err
}

// Close implements worker.Records: it ends the announcements of this handle, which
// can still be used.
func (h *Records) Close() error {
	r := h.registry
	r.mu.Lock()
	defer r.mu.Unlock()
	for p, by := range r.peers {
		if by == h {
			delete(r.peers, p)
		}
	}
	return nil
}

// do runs f under the lock, unless ctx has ended.
func (h *Records) do(ctx context.Context, what string, f func(*Registry) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	h.registry.mu.Lock()
	defer h.registry.mu.Unlock()
	return f(h.registry)
}
