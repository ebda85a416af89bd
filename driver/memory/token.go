package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/leaf-idgen/leaf/internal/auth"
)

var _ auth.Store = (*Store)(nil)

// NamedTokens implements auth.Store.
func (s *Store) NamedTokens(ctx context.Context) (all []auth.Token, err error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("read named tokens: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.tokens)) {
		all = append(all, s.tokens[name])
	}
	return all, nil
}

// CreateToken implements auth.Store.
func (s *Store) CreateToken(ctx context.Context, t auth.Token) error {
	if err := t.Validate(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("create token: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.tokens[t.Name]; ok {
		return auth.ErrTokenExists(t.Name)
	}
	if len(s.tokens) >= auth.MaxTokens {
		return auth.ErrTooManyTokens()
	}
	s.tokens[t.Name] = t
	return nil
}

// RevokeToken implements auth.Store.
func (s *Store) RevokeToken(ctx context.Context, name string) error {
	if err := auth.CheckName(name); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("revoke token: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.tokens[name]; !ok {
		return auth.ErrNoToken(name)
	}
	delete(s.tokens, name)
	return nil
}
