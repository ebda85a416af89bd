package world

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/worker"
)

// List implements worker.Records.
func (h *RegistryHandle) List(ctx context.Context) ([]worker.Record, error) {
	claims, err := h.list(ctx)
	if err != nil || !h.registry.InParts {
		return claims, err
	}
	if rng := h.registry.s.Rand(); draw(rng, 0.1) { // much can happen between the two
		if err := h.Process.Wait(ctx, nil, time.Duration(rng.Int64N(int64(5*time.Second)))); err != nil {
			return nil, err
		}
	}
	bounds, err := h.list(ctx)
	if err != nil {
		return nil, err
	}
	records := memory.InParts(claims, bounds)
	for i, b := range bounds {
		if records[i].Version != b.Version {
			h.registry.Faults.Hit(ReadInParts)
		}
	}
	return records, nil
}

// list returns all records as they are at one moment.
func (h *RegistryHandle) list(ctx context.Context) ([]worker.Record, error) {
	r := h.registry
	return Call(ctx, h.Process, h.link, "list", Repeatable, func() ([]worker.Record, error) {
		records, err := r.inside.List(context.Background())
		slices.SortFunc(records, func(a, b worker.Record) int { return cmp.Compare(a.Number, b.Number) })
		return records, err
	})
}
