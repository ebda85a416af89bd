package manage

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
	"github.com/leaf-idgen/leaf/snowflake"
	"github.com/leaf-idgen/leaf/worker"
)

// RegistryTimeout bounds a command's call to a registry: a list of all numbers is more
// than a claim.
const RegistryTimeout = 10 * time.Second

// Registry is an opened registry of worker IDs. It implements WorkerBackend.
type Registry struct {
	worker.Registry

	Layout    snowflake.Layout
	Namespace worker.Namespace
	Own       func() int64 // the number that this process holds, -1: none
}

var _ WorkerBackend = (*Registry)(nil)

// Workers implements WorkerBackend.
func (r *Registry) Workers(ctx context.Context) (Workers, error) {
	ctx, cancel := context.WithTimeout(ctx, RegistryTimeout)
	defer cancel()
	info := r.Info()
	out := Workers{
		Registry: info.Name, Kind: info.Kind.String(), Namespace: r.Namespace.Name, Layout: r.Layout.Fingerprint(), Last: 1<<r.Layout.WorkerBits - 1,
		Now: time.Now().UnixMilli(), Workers: []Worker{},
	}
	records, err := r.List(ctx)
	if err != nil {
		return out, registryError(fmt.Errorf("list the worker IDs: %w", err))
	}
	peers, err := r.Peers(ctx)
	if err != nil {
		return out, registryError(fmt.Errorf("list the running nodes: %w", err))
	}
	running := map[string]bool{}
	for _, p := range peers {
		running[p.Nonce] = p.Nonce != ""
	}
	own := r.Own()
	for _, rec := range records {
		out.Workers = append(out.Workers, describeWorker(rec, own, running[rec.Nonce], out.Now))
	}
	return out, nil
}

func describeWorker(r worker.Record, own int64, running bool, now int64) Worker {
	d := Worker{
		Number: r.Number, Address: r.Address, Own: r.Number == own && r.Damage == "", Floor: r.Floor, Bound: r.Bound, Released: r.Released,
	}
	switch {
	case r.Damage != "":
		d.State = WorkerUnreadable
	case r.Released:
		d.State = WorkerReleased
	case d.Own || running:
		d.State = WorkerRunning
	case now < r.Bound:
		d.State = WorkerHeld
	default:
		d.State = WorkerExpired
	}
	return d
}

// ReleaseWorker implements WorkerBackend.
func (r *Registry) ReleaseWorker(ctx context.Context, number int64) error {
	if number < 0 || number > 1<<r.Layout.WorkerBits-1 {
		return leaf.BadField("worker", number, fmt.Sprintf("must be 0 to %d, the workers of the layout", 1<<r.Layout.WorkerBits-1))
	}
	ctx, cancel := context.WithTimeout(ctx, RegistryTimeout)
	defer cancel()
	return registryError(r.Free(ctx, number))
}

// InitWorkers implements WorkerBackend.
func (r *Registry) InitWorkers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, RegistryTimeout)
	defer cancel()
	return registryError(r.Init(ctx, r.Namespace))
}

// registryError gives an error of a registry that has no class the one that callers
// can act on.
func registryError(err error) error {
	switch {
	case err == nil || leaf.ClassOf(err).Err != nil:
		return err
	case errors.Is(err, worker.ErrForeign), errors.Is(err, worker.ErrNotFound), errors.Is(err, worker.ErrTaken):
		return fmt.Errorf("%w: %w", leaf.ErrConflict, err)
	case errors.Is(err, worker.ErrSchema), errors.Is(err, segment.ErrSchema), errors.Is(err, segment.ErrDenied):
		return fmt.Errorf("%w: %w", leaf.ErrNotReady, err)
	}
	return fmt.Errorf("%w: the registry of worker IDs does not answer: %w", leaf.ErrNotReady, err)
}
