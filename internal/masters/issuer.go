package masters

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// Issuer issues the IDs of all tags: those of tags in several databases by their parts, and the others as the
// engine does. All methods are safe for concurrent use.
type Issuer struct {
	engine Engine
	router *segment.Router
	near   []int // places in Router.Stores, the nearest first; the others follow
	cfg    Config

	tags sync.Map // of *tag, by name: those that have issued an ID
}

var _ leaf.Issuer = (*Issuer)(nil)

// New returns an Issuer on an engine, which has the same router. Error: leaf.ErrBadRequest for a Config outside
// its limits.
func New(engine Engine, router *segment.Router, cfg Config) (*Issuer, error) {
	near, err := cfg.places(router)
	if err != nil {
		return nil, err
	}
	return &Issuer{engine: engine, router: router, near: near, cfg: cfg.withDefaults()}, nil
}

// tag is a tag in several databases. It never changes, but for avoided and kept.
type tag struct {
	name    string
	masters *segment.Masters
	parts   []string // names of the parts
	order   []int    // the parts, the nearest first
	avoided []atomic.Bool
	kept    atomic.Bool // in Issuer.tags, or another one of its name is
}

// find returns what is known of a tag, nil if it lives in one database.
func (x *Issuer) find(name string) (*tag, error) {
	if t, ok := x.tags.Load(name); ok {
		return t.(*tag), nil
	}
	m := x.router.Masters(name)
	if m == nil {
		if of := x.router.TagOfPart(name); of != "" {
			return nil, fmt.Errorf("%w: %q is a row of the tag %q", leaf.ErrUnknownTag, name, of)
		}
		return nil, nil //nolint:nilnil // a tag as others
	}
	parts, err := m.Parts(name)
	if err != nil {
		return nil, err
	}
	t := &tag{name: name, masters: m, parts: parts, avoided: make([]atomic.Bool, len(parts))}
	for _, store := range x.near {
		if i := slices.Index(m.Stores, store); i >= 0 {
			t.order = append(t.order, i)
		}
	}
	for i := range parts {
		if !slices.Contains(t.order, i) {
			t.order = append(t.order, i)
		}
	}
	return t, nil
}

// Next implements leaf.Issuer.
func (x *Issuer) Next(ctx context.Context, name string) (id int64, err error) {
	t, err := x.find(name)
	switch {
	case err != nil:
		return 0, err
	case t == nil:
		return x.engine.Next(ctx, name)
	}
	if i := t.order[0]; !t.avoided[i].Load() { // as nearly always: without the closure below
		if n, err := x.engine.Next(inStock, t.parts[i]); err == nil {
			if id, err = t.masters.ID(i, n); err == nil {
				x.remember(t)
				return id, nil
			}
		}
	}
	err = x.serve(ctx, t, func(ctx context.Context, i int) error {
		n, err := x.engine.Next(ctx, t.parts[i])
		if err == nil {
			id, err = t.masters.ID(i, n)
		}
		return err
	})
	return id, err
}

// NextN implements leaf.Issuer.
func (x *Issuer) NextN(ctx context.Context, name string, n int) (ids []leaf.Range, err error) {
	t, err := x.find(name)
	switch {
	case err != nil:
		return nil, err
	case t == nil:
		return x.engine.NextN(ctx, name, n)
	case n < 1 || n > leaf.MaxBatch:
		return nil, leaf.BadField("count", n, fmt.Sprintf("must be 1 to %d", leaf.MaxBatch))
	}
	err = x.serve(ctx, t, func(ctx context.Context, i int) error {
		numbers, err := x.engine.NextN(ctx, t.parts[i], n)
		if err != nil {
			return err
		}
		ids = make([]leaf.Range, 0, len(numbers)+n/int(t.masters.Block)+1)
		for _, r := range numbers {
			if ids, err = t.masters.AppendIDs(ids, i, r); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ids, nil
}

// remember keeps a tag that has issued an ID. Any name matches a pattern, so others are not kept.
func (x *Issuer) remember(t *tag) {
	if !t.kept.Load() {
		x.tags.LoadOrStore(t.name, t)
		t.kept.Store(true)
	}
}

// errNoStock is the error of a call in stock that finds no ID in memory.
var errNoStock = errors.New("no ID in memory")

type noWait struct{}

func (noWait) Admit() error { return errNoStock }

// inStock is the context of calls of the engine that do not wait.
var inStock = context.WithValue(context.Background(), leaf.AdmissionKey{}, leaf.Admission(noWait{}))
