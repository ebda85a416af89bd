package world

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

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
	return h.registry.join(claims, bounds), nil
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

// join returns the claims of one list with T of a later one.
func (r *Registry) join(claims, bounds []worker.Record) (records []worker.Record) {
	records = slices.Clone(bounds)
	for i := range records {
		b := &records[i]
		at := slices.IndexFunc(claims, func(c worker.Record) bool { return c.Number == b.Number })
		if b.Damage != "" {
			continue
		}
		bound, version := b.Bound, parts(*b)
		if *b = (worker.Record{Number: b.Number}); at >= 0 {
			*b = claims[at]
		}
		if b.Damage != "" {
			continue
		}
		claim := parts(*b).claim
		if claim != version.claim {
			r.Faults.Hit(ReadInParts)
		}
		b.Bound, b.Version = bound, claim+"/"+version.bound
	}
	for _, c := range claims {
		if !slices.ContainsFunc(bounds, func(b worker.Record) bool { return b.Number == c.Number }) {
			records = append(records, worker.Record{Number: c.Number, Damage: "it has no T"})
		}
	}
	return records
}

// versionParts are the versions of the two parts of a record, as memory.Registry counts them.
type versionParts struct{ claim, bound string }

// parts returns those of a record; without a record they are 0.
func parts(r worker.Record) versionParts {
	if claim, bound, found := strings.Cut(r.Version, "/"); found {
		return versionParts{claim, bound}
	}
	return versionParts{"0", "0"}
}
