// Package memory is a segment.Store and segment.Catalog that lives in a map. It
// is the smallest correct store: tests, examples, benchmarks and the simulation
// use it, and the conformance suite holds it to the same contract as a database.
//
// It promises what the contract says, except durability: its rows end with the
// process. It never blocks and does no I/O, so it needs no deadline of its own; a
// call whose context is already done returns that error and does nothing.
//
// [Registry] is the same for worker IDs, [Fence] for the cluster fence, and [Directory]
// for the directory of nodes.
// [Intercept] lets calls to a registry fail.
package memory

import (
	"context"
	"fmt"
	"sync"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/audit"
	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/internal/limit"
	"github.com/leaf-idgen/leaf/segment"
)

// Store is a database in memory. Use New. All methods are safe for concurrent use.
type Store struct {
	mu      sync.Mutex
	rows    map[string]segment.Row
	limits  limit.Rules
	binding *segment.Binding // nil: not bound yet
	board   board
	entries []audit.Entry // the newest first
	tokens  map[string]auth.Token
}

// New returns an empty store.
func New() *Store {
	return &Store{
		rows:   make(map[string]segment.Row),
		limits: limit.Rules{Tags: make(map[string]limit.Rule), Clients: make(map[string]limit.Rule)},
		board:  newBoard(),
		tokens: make(map[string]auth.Token),
	}
}

// Put writes a row as it is, without any check, and replaces one of the same
// name. Tests use it for rows that Create would refuse.
func (s *Store) Put(row segment.Row) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rows[row.Tag] = row
}

// Remove deletes a row as an administrator does with SQL: nothing is left of it.
func (s *Store) Remove(tag string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.rows, tag)
	delete(s.limits.Tags, tag)
}

// Bind implements segment.Store.
func (s *Store) Bind(ctx context.Context, b segment.Binding) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("bind: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.binding == nil {
		if b.Rule != "" {
			return fmt.Errorf("bind: %w: no tag rule is recorded; call RecordRule", segment.ErrSchema)
		}
		s.binding = &b
	}
	if *s.binding != b && (s.binding.Rule != "" || b.Rule != "") {
		return fmt.Errorf("%w: the store is bound to store %q of rule %q, not to store %q of rule %q",
			segment.ErrRule, s.binding.Store, s.binding.Rule, b.Store, b.Rule)
	}
	return nil
}

// RecordRule makes the store a part of a tag rule, once: Bind records no rule.
func (s *Store) RecordRule(b segment.Binding) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.binding != nil && *s.binding != b {
		return fmt.Errorf("%w: the store is bound already", leaf.ErrConflict)
	}
	s.binding = &b
	return nil
}

// Reserve implements segment.Store.
func (s *Store) Reserve(ctx context.Context, req segment.Request) (res segment.Reservation, err error) {
	if err := req.Validate(); err != nil {
		return res, err
	}
	err = s.change(ctx, "reserve", req.Tag, func(row *segment.Row) error {
		length := req.LengthFor(row.Step)
		if err := segment.CheckRow(row.Tag, row.MaxID, row.Step, length); err != nil {
			return err
		}
		res = segment.Reservation{Range: leaf.Range{Lo: row.MaxID, Hi: row.MaxID + length}, Step: row.Step}
		row.MaxID = res.Range.Hi
		return nil
	})
	return res, err
}

// ReturnUnused implements segment.Store.
func (s *Store) ReturnUnused(ctx context.Context, tag string, hi, lo int64) error {
	if err := segment.CheckReturn(hi, lo); err != nil {
		return err
	}
	return s.change(ctx, "return", tag, func(row *segment.Row) error {
		if row.MaxID != hi {
			return fmt.Errorf("%w: max_id is %d, not %d", leaf.ErrConflict, row.MaxID, hi)
		}
		row.MaxID = lo
		return nil
	})
}

// Raise implements segment.Store.
func (s *Store) Raise(ctx context.Context, tag string, above int64) (maxID int64, err error) {
	if above > segment.MaxMaxID {
		return 0, fmt.Errorf("raise tag %q: %w: %d is above %d", tag, leaf.ErrOverflow, above, int64(segment.MaxMaxID))
	}
	err = s.change(ctx, "raise", tag, func(row *segment.Row) error {
		row.MaxID = max(row.MaxID, above)
		maxID = row.MaxID
		return nil
	})
	return maxID, err
}

// Lookup implements segment.Store.
func (s *Store) Lookup(ctx context.Context, tag string) (segment.Row, error) {
	if err := leaf.ValidateTag(tag); err != nil {
		return segment.Row{}, err
	}
	if err := ctx.Err(); err != nil {
		return segment.Row{}, fmt.Errorf("look up tag %q: %w", tag, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	row, ok := s.rows[tag]
	if !ok {
		return segment.Row{}, fmt.Errorf("look up tag %q: %w", tag, leaf.ErrUnknownTag)
	}
	return row, nil
}

// Rows implements segment.Store.
func (s *Store) Rows(ctx context.Context) ([]segment.Row, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read rows: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rows := make([]segment.Row, 0, len(s.rows))
	for _, row := range s.rows {
		rows = append(rows, row)
	}
	return rows, nil
}
