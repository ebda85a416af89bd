package world

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/internal/sim/sched"
	"github.com/leaf-idgen/leaf/worker"
)

// Registry is a registry of worker IDs on a server, as worker.Records: driver/memory
// keeps what is in it, and this type knows what is true of it, and breaks it.
type Registry struct {
	Server *Server
	Faults *Faults

	// CommitError is the chance that a write which was done is answered with an
	// error.
	CommitError float64

	// Lease is how long an announcement is shown. A session may end late: then its
	// announcement stays for LateBy longer.
	Lease  time.Duration
	LateBy time.Duration

	// InParts says that List reads the claims first and T later, as from ZooKeeper.
	InParts bool

	// Others are numbers of another program.
	Others []worker.Adoptable

	// Wrote is told of each write that took effect, at that moment: what the number's
	// record was (its zero value if there was none), what it is now, and by which
	// handle, nil for an operator or an accident.
	Wrote func(by *RegistryHandle, before, after worker.Record)

	// Named is told that a namespace was created or amended, and at which true time the
	// request for it was sent. It is not told of one that is still worker.Unseen.
	Named func(by *RegistryHandle, ns worker.StoredNamespace, sent time.Duration)

	s        *sched.Scheduler
	info     worker.Info
	memory   *memory.Registry
	inside   *memory.Records
	last     map[int64]worker.Record // what memory holds, without versions
	sessions []session               // by nonce
}

// session is an announcement.
type session struct {
	peer  worker.Peer
	since time.Duration // without a break
	lease time.Duration // its regular end
	ends  time.Duration
	late  bool // a node has seen it after that
}

// NewRegistry returns an empty registry.
func NewRegistry(s *sched.Scheduler, server *Server, faults *Faults, info worker.Info) *Registry {
	r := &Registry{Server: server, Faults: faults, s: s, info: info, Lease: 15 * time.Second, memory: memory.NewRegistry(), last: map[int64]worker.Record{}}
	r.inside = r.memory.Open()
	return r
}

// Open returns a process's handle. link must lead to the registry's server.
func (r *Registry) Open(p *sched.Process, link *Link) *RegistryHandle {
	return &RegistryHandle{Process: p, registry: r, link: link}
}

// Record returns what is stored for a number.
func (r *Registry) Record(number int64) (worker.Record, bool) {
	record, ok := r.last[number]
	return record, ok
}

// Numbers returns the numbers that have a record, sorted.
func (r *Registry) Numbers() []int64 { return slices.Sorted(maps.Keys(r.last)) }

// Namespace returns what is stored, nil if nothing is.
func (r *Registry) Namespace() *worker.StoredNamespace {
	ns, _ := r.inside.Namespace(context.Background(), nil) // memory fails only with its context
	return ns
}

// Announced is a process that is announced.
type Announced struct {
	worker.Peer
	Since time.Duration // without a break
}

// Announced returns the processes that are announced.
func (r *Registry) Announced() (peers []Announced) {
	now := r.s.Elapsed()
	r.sessions = slices.DeleteFunc(r.sessions, func(s session) bool { return s.ends < now })
	for _, s := range r.sessions {
		peers = append(peers, Announced{s.peer, s.since})
	}
	return peers
}

// RegistryHandle is a process's use of a Registry.
type RegistryHandle struct {
	Process  *sched.Process
	registry *Registry
	link     *Link
}

var _ worker.Records = (*RegistryHandle)(nil)

// Info implements worker.Records.
func (h *RegistryHandle) Info() worker.Info { return h.registry.info }

// Namespace implements worker.Records.
func (h *RegistryHandle) Namespace(ctx context.Context, want *worker.StoredNamespace) (*worker.StoredNamespace, error) {
	r := h.registry
	sent := r.s.Elapsed()
	return Call(ctx, h.Process, h.link, "namespace", Repeatable, func() (*worker.StoredNamespace, error) {
		before := r.Namespace()
		ns, err := r.inside.Namespace(context.Background(), want)
		if before == nil && ns != nil && ns.Given != worker.Unseen && r.Named != nil {
			r.Named(h, *ns, sent)
		}
		return ns, err
	})
}

// Amend implements worker.Records.
func (h *RegistryHandle) Amend(ctx context.Context, old, next worker.StoredNamespace) error {
	r := h.registry
	sent := r.s.Elapsed()
	_, err := Call(ctx, h.Process, h.link, "amend", Repeatable, func() (struct{}, error) {
		err := r.inside.Amend(context.Background(), old, next)
		if err == nil && r.Named != nil {
			r.Named(h, next, sent)
		}
		return struct{}{}, err
	})
	return err
}

// Reserved implements worker.Records.
func (h *RegistryHandle) Reserved(ctx context.Context) ([]worker.Adoptable, error) {
	r := h.registry
	if len(r.Others) == 0 {
		return nil, nil // such a driver makes no call either
	}
	return Call(ctx, h.Process, h.link, "reserved", Repeatable, func() ([]worker.Adoptable, error) {
		return slices.Clone(r.Others), nil
	})
}

// Put implements worker.Records.
func (h *RegistryHandle) Put(ctx context.Context, record worker.Record) (string, error) {
	r := h.registry
	return Call(ctx, h.Process, h.link, "put", Repeatable, func() (string, error) {
		version, err := r.inside.Put(context.Background(), record)
		if err != nil {
			return "", err
		}
		r.note(h, record)
		if draw(r.s.Rand(), r.CommitError) {
			r.Faults.Hit(CommitUnknown)
			return "", fmt.Errorf("commit: %w", ErrConnLost)
		}
		return version, nil
	})
}

// note keeps last and the watcher up to date.
func (r *Registry) note(by *RegistryHandle, record worker.Record) {
	before := r.last[record.Number]
	record.Version, record.Incarnation = "", ""
	r.last[record.Number] = record
	if r.Wrote != nil {
		r.Wrote(by, before, record)
	}
}

// Announce implements worker.Records.
func (h *RegistryHandle) Announce(ctx context.Context, p worker.Peer) error {
	return h.session(ctx, "announce", func(r *Registry, since time.Duration) {
		lease := r.s.Elapsed() + r.Lease
		r.sessions = append(r.sessions, session{peer: p, since: since, lease: lease, ends: lease + r.LateBy})
	}, p)
}

// Withdraw implements worker.Records.
func (h *RegistryHandle) Withdraw(ctx context.Context, p worker.Peer) error {
	return h.session(ctx, "withdraw", func(*Registry, time.Duration) {}, p)
}

// session ends what p had announced, and does more. since is when that began, or now.
func (h *RegistryHandle) session(ctx context.Context, what string, more func(r *Registry, since time.Duration), p worker.Peer) error {
	r := h.registry
	_, err := Call(ctx, h.Process, h.link, what, Repeatable, func() (struct{}, error) {
		since := r.s.Elapsed()
		r.sessions = slices.DeleteFunc(r.sessions, func(s session) bool {
			own := s.peer.Nonce == p.Nonce
			if own && s.ends >= since {
				since = s.since
			}
			return own
		})
		more(r, since)
		return struct{}{}, nil
	})
	return err
}

// Peers implements worker.Records.
func (h *RegistryHandle) Peers(ctx context.Context) ([]worker.Peer, error) {
	r := h.registry
	return Call(ctx, h.Process, h.link, "peers", Repeatable, func() ([]worker.Peer, error) {
		var peers []worker.Peer
		for _, a := range r.Announced() {
			peers = append(peers, a.Peer)
		}
		for i := range r.sessions {
			if s := &r.sessions[i]; s.lease < r.s.Elapsed() && !s.late {
				s.late = true
				r.Faults.Hit(SessionExpired)
			}
		}
		return peers, nil
	})
}

// Close implements worker.Records. The announcements stay until they end.
func (h *RegistryHandle) Close() error { return nil }
