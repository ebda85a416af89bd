package manage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

// RegistryTimeout bounds a command's call to a registry: a list of all numbers is more
// than a claim.
const RegistryTimeout = 10 * time.Second

// Workers is a registry of worker IDs. Moments are Unix milliseconds; 64-bit numbers
// are strings in JSON.
type Workers struct {
	Registry  string   `json:"registry"` // e.g. "zookeeper"
	Kind      string   `json:"kind"`     // "leased": a pool; "fixed": numbers belong to addresses
	Namespace string   `json:"namespace"`
	Layout    string   `json:"layout"`
	Last      int64    `json:"last"`       // the layout's highest worker ID
	Now       int64    `json:"now,string"` // the clock that State compares with
	Workers   []Worker `json:"workers"`    // by number
}

// Worker is what a registry knows about a worker ID.
type Worker struct {
	Number   int64  `json:"worker"`
	Address  string `json:"address,omitempty"` // of the last owner
	State    string `json:"state"`             // see the constants
	Own      bool   `json:"own,omitempty"`     // held by the node that answers; a static number also while that waits
	Floor    int64  `json:"floor,string"`      // the last owner issues nothing below; 0: the epoch
	Bound    int64  `json:"bound,string"`      // T: the last owner issues nothing at or above; 0: nothing was issued with the number, unless it is unreadable or static
	Released bool   `json:"released,omitempty"`
}

// States of a Worker.
const (
	WorkerRunning  = "running"  // its owner was heard of within a lease
	WorkerHeld     = "held"     // its owner was not heard of, and T has not passed
	WorkerExpired  = "expired"  // T has passed without a release
	WorkerReleased = "released" // by its owner or an operator

	// WorkerUnreadable: the record cannot be read, and no claim takes its number. The number is -1 if it
	// cannot be read either.
	WorkerUnreadable = "unreadable"
)

// Registry is an opened registry of worker IDs. It is a RegistrySite.
type Registry struct {
	Opened    worker.Registry
	Layout    snowflake.Layout
	Namespace worker.Namespace
	Own       func() int64 // the number that this process holds, -1: none
	Audit     *AuditLog    // of a registry that was opened without a node
}

// AuditLog implements Audited.
func (r *Registry) AuditLog() *AuditLog { return r.Audit }

// Registry implements RegistrySite.
func (r *Registry) Registry(context.Context) (*Registry, error) { return r, nil }

// ListWorkers returns what the registry knows.
type ListWorkers struct{}

func (ListWorkers) run(ctx context.Context, r *Registry) (Workers, error) {
	ctx, cancel := context.WithTimeout(ctx, RegistryTimeout)
	defer cancel()
	info := r.Opened.Info()
	out := Workers{
		Registry: info.Name, Kind: info.Kind.String(), Namespace: r.Namespace.Name, Layout: r.Layout.Fingerprint(), Last: 1<<r.Layout.WorkerBits - 1,
		Now: time.Now().UnixMilli(), Workers: []Worker{},
	}
	records, err := r.Opened.List(ctx)
	if err != nil {
		return out, registryError(fmt.Errorf("list the worker IDs: %w", err))
	}
	peers, err := r.Opened.Peers(ctx)
	if err != nil {
		return out, registryError(fmt.Errorf("list the running nodes: %w", err))
	}
	running := map[string]bool{}
	for _, p := range peers {
		running[p.Nonce] = p.Nonce != ""
	}
	own := r.Own()
	private := info.Kind == worker.Fixed && !info.Shared // the number of this process, also while it waits
	for _, rec := range records {
		out.Workers = append(out.Workers, r.describe(rec, private || rec.Number == own, running[rec.Nonce], out.Now))
	}
	return out, nil
}

func (r *Registry) describe(rec worker.Record, own, running bool, now int64) Worker {
	d := Worker{
		Number: rec.Number, Address: rec.Address, Own: own && rec.Damage == "", Floor: r.moment(rec.Floor), Bound: r.moment(rec.Bound), Released: rec.Released,
	}
	switch {
	case rec.Damage != "":
		d.State = WorkerUnreadable
	case rec.Released:
		d.State = WorkerReleased
	case d.Own || running:
		d.State = WorkerRunning
	case now < rec.Bound:
		d.State = WorkerHeld
	default:
		d.State = WorkerExpired
	}
	return d
}

// moment returns a floor or bound, 0 for the epoch of the layout: no ID lies below that.
func (r *Registry) moment(unixMilli int64) int64 {
	if unixMilli <= r.Layout.Epoch {
		return 0
	}
	return unixMilli
}

// NeverUsed is the error for a worker ID of which the registry knows nothing.
func NeverUsed(number int64) error {
	return fmt.Errorf("%w: worker ID %d was never used: the registry has no record of it; see leaf worker list", leaf.ErrConflict, number)
}

// ReleaseWorker takes a worker ID from its owner: the owner, if it lives, stops
// issuing and claims another one, and the next owner starts at the record's Bound.
// leaf.ErrConflict if there is no record of the number.
type ReleaseWorker struct {
	Number int64 `query:"worker" must:"must be a worker ID"`
}

func (q ReleaseWorker) validate() error {
	if q.Number < 0 {
		return leaf.BadField("worker", q.Number, "must be a worker ID")
	}
	return nil
}

func (q ReleaseWorker) run(ctx context.Context, r *Registry) (None, error) {
	if last := int64(1)<<r.Layout.WorkerBits - 1; q.Number < 0 || q.Number > last {
		return None{}, leaf.BadField("worker", q.Number, fmt.Sprintf("must be 0 to %d, the worker IDs of the layout", last))
	}
	ctx, cancel := context.WithTimeout(ctx, RegistryTimeout)
	defer cancel()
	err := r.Opened.Free(ctx, q.Number)
	if !errors.Is(err, worker.ErrNotFound) {
		return None{}, registryError(err)
	}
	if r.Opened.Info().Name == "static" {
		return None{}, fmt.Errorf("%w: the configuration of this node gives its worker ID (registry static), and no command can release it", leaf.ErrConflict)
	}
	all, err := r.Opened.List(ctx)
	if err != nil {
		return None{}, registryError(err)
	}
	if i := slices.IndexFunc(all, func(r worker.Record) bool { return r.Number == q.Number }); i >= 0 {
		return None{}, fmt.Errorf("%w: worker ID %d belongs to %s, which is no node of Leaf for Go; stop that server, and remove its record with its own tools", leaf.ErrConflict, q.Number, cmp.Or(all[i].Address, "a server of another program"))
	}
	return None{}, NeverUsed(q.Number)
}

// InitWorkers declares the registry new, so that the first claim need not wait.
// It does nothing if the registry was used by the same namespace and layout before;
// leaf.ErrConflict if by others.
type InitWorkers struct{}

func (InitWorkers) run(ctx context.Context, r *Registry) (None, error) {
	ctx, cancel := context.WithTimeout(ctx, RegistryTimeout)
	defer cancel()
	return None{}, registryError(r.Opened.Init(ctx, r.Namespace))
}

// registryError gives an error of a registry that has no class the one that callers
// can act on.
func registryError(err error) error {
	switch {
	case err == nil || leaf.ClassOf(err).Err != nil:
		return err
	case errors.Is(err, worker.ErrForeign), errors.Is(err, worker.ErrNotFound), errors.Is(err, worker.ErrTaken), errors.Is(err, worker.ErrDamaged), isOtherCluster(err):
		return fmt.Errorf("%w: %w", leaf.ErrConflict, err)
	case errors.Is(err, worker.ErrSchema), errors.Is(err, segment.ErrSchema), errors.Is(err, segment.ErrDenied):
		return fmt.Errorf("%w: %w", leaf.ErrNotReady, err)
	}
	return fmt.Errorf("%w: the registry of worker IDs does not answer: %w", leaf.ErrNotReady, err)
}
