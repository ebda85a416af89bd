package memory

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/limit"
)

var _ limit.Store = (*Store)(nil)

// Limits implements limit.Store.
func (s *Store) Limits(ctx context.Context) (limit.Rules, error) {
	if err := ctx.Err(); err != nil {
		return limit.Rules{}, fmt.Errorf("read limits: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return limit.Rules{Tags: maps.Clone(s.limits.Tags), Clients: maps.Clone(s.limits.Clients)}, nil
}

// SetTagLimit implements limit.Store.
func (s *Store) SetTagLimit(ctx context.Context, tag string, c limit.Change) (limit.Rule, error) {
	if err := errors.Join(leaf.ValidateTag(tag), c.Validate()); err != nil {
		return limit.Rule{}, err
	}
	return s.setLimit(ctx, "tag", s.limits.Tags, tag, c, func() error {
		if _, ok := s.rows[tag]; !ok {
			return leaf.ErrUnknownTag
		}
		return nil
	})
}

// SetClientLimit implements limit.Store.
func (s *Store) SetClientLimit(ctx context.Context, client string, c limit.Change) (limit.Rule, error) {
	if err := errors.Join(limit.ValidateClient(client), c.Validate()); err != nil {
		return limit.Rule{}, err
	}
	return s.setLimit(ctx, "client", s.limits.Clients, client, c, func() error { return nil })
}

// setLimit changes one rule, if check allows it.
func (s *Store) setLimit(ctx context.Context, kind string, rules map[string]limit.Rule, name string, c limit.Change, check func() error) (limit.Rule, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := errors.Join(ctx.Err(), check()); err != nil {
		return limit.Rule{}, fmt.Errorf("limit %s %q: %w", kind, name, err)
	}
	r := c.ApplyTo(rules[name])
	if delete(rules, name); r != (limit.Rule{}) {
		rules[name] = r
	}
	return r, nil
}
