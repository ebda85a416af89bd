package auth_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/driver/memory"
	"github.com/leaf-idgen/leaf/internal/auth"
)

// stepped is a Runtime whose clock has been set.
type stepped struct {
	leaf.Runtime

	by time.Duration
}

func (s stepped) Now() time.Time { return time.Now().Round(0).Add(s.by) }

// TestClockThatWasSetBack: named tokens are read on when the clock of the machine is set back.
func TestClockThatWasSetBack(t *testing.T) {
	t.Parallel()
	store := memory.New()
	secret, digest := auth.NewSecret()
	if err := store.CreateToken(t.Context(), auth.Token{Name: "a", Digest: digest, Roles: roles(t, "issue")}); err != nil {
		t.Fatal(err)
	}
	n := auth.NewNamed()
	read := func(clock time.Duration) (*auth.Grant, error) {
		t.Helper()
		c := auth.FollowConfig{Store: store, Timeout: time.Minute, Runtime: stepped{leaf.SystemRuntime(), clock}, Logger: slog.New(slog.DiscardHandler)}
		if err := n.Refresh(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		return auth.NewTokens().WithNamed(n, nil).Identify(leaf.Credentials{Token: secret})
	}
	g, err := read(time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.RevokeToken(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := read(0); !errors.Is(err, leaf.ErrUnauthenticated) || g.Issue("order") == nil {
		t.Errorf("a token that was revoked after the clock was set back: %v, open connection %v", err, g.Issue("order"))
	}
}

// late is a Store whose first reading comes back late.
type late struct {
	auth.Store

	begun, end chan struct{}
}

func (l *late) NamedTokens(ctx context.Context) ([]auth.Token, error) {
	tokens, err := l.Store.NamedTokens(ctx)
	close(l.begun)
	<-l.end
	return tokens, err
}

// TestLateReading: a reading that comes back after one that began later changes nothing.
func TestLateReading(t *testing.T) {
	t.Parallel()
	store := memory.New()
	secret, digest := auth.NewSecret()
	if err := store.CreateToken(t.Context(), auth.Token{Name: "a", Digest: digest, Roles: roles(t, "issue")}); err != nil {
		t.Fatal(err)
	}
	n, slow := auth.NewNamed(), &late{store, make(chan struct{}), make(chan struct{})}
	config := func(s auth.Store) auth.FollowConfig {
		return auth.FollowConfig{Store: s, Timeout: time.Minute, Runtime: stepped{leaf.SystemRuntime(), 0}, Logger: slog.New(slog.DiscardHandler)}
	}
	ended := make(chan error, 1)
	go func() { ended <- n.Refresh(t.Context(), config(slow)) }()
	<-slow.begun
	err := errors.Join(store.RevokeToken(t.Context(), "a"), n.Refresh(t.Context(), config(store)))
	close(slow.end)
	if err = errors.Join(err, <-ended); err != nil {
		t.Fatal(err)
	}
	if _, err := auth.NewTokens().WithNamed(n, nil).Identify(leaf.Credentials{Token: secret}); !errors.Is(err, leaf.ErrUnauthenticated) {
		t.Errorf("a revoked token: %v", err)
	}
}
