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
func (s *Store) SetTagLimit(ctx context.Context, tag string, r limit.Rule) error {
	if err := errors.Join(leaf.ValidateTag(tag), r.Validate()); err != nil {
		return err
	}
	return s.setLimit(ctx, "tag", s.limits.Tags, tag, r, func() error {
		if _, ok := s.rows[tag]; !ok {
			return leaf.ErrUnknownTag
		}
		return nil
	})
}

// SetClientLimit implements limit.Store.
func (s *Store) SetClientLimit(ctx context.Context, client string, r limit.Rule) error {
	if err := errors.Join(limit.ValidateClient(client), r.Validate()); err != nil {
		return err
	}
	return s.setLimit(ctx, "client", s.limits.Clients, client, r, func() error { return nil })
}

// setLimit replaces one rule, if check allows it.
func (s *Store) setLimit(ctx context.Context, kind string, rules map[string]limit.Rule, name string, r limit.Rule, check func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := errors.Join(ctx.Err(), check()); err != nil {
		return fmt.Errorf("limit %s %q: %w", kind, name, err)
	}
	if delete(rules, name); r != (limit.Rule{}) {
		rules[name] = r
	}
	return nil
}
