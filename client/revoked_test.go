package client_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/client"
	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/internal/limit"
	"github.com/leaf-idgen/leaf/internal/server/grpcd"
)

// TestRevokedToken: a client whose function of WithTokenFunc has moved to another token notices nothing when
// the first one is revoked: its streams are opened again.
func TestRevokedToken(t *testing.T) {
	t.Parallel()
	secrets, tokens := make([]string, 2), make([]auth.Token, 2)
	for i, name := range []string{"old", "new"} {
		secret, digest := auth.NewSecret()
		secrets[i], tokens[i] = secret, auth.Token{Name: name, Digest: digest, Roles: auth.Roles{All: true}}
	}
	named := auth.NewNamed()
	named.Set(tokens, time.Now())
	gate, err := limit.New(leaf.Issuers{Segment: newGathering(eachTag), Snowflake: leaf.Disabled("snowflake")}, limit.Config{Tokens: auth.NewTokens().WithNamed(named, nil)})
	if err != nil {
		t.Fatal(err)
	}
	address, _ := startNode(t, "127.0.0.1:0", grpcd.Config{Access: gate, Logger: slog.New(slog.DiscardHandler)})
	var current atomic.Pointer[string]
	current.Store(&secrets[0])
	c := newClient(t, client.Addresses(address), client.WithPlainToken(), client.WithTokenFunc(func(context.Context) (string, error) { return *current.Load(), nil }))
	ofEach(t, c, 10*time.Second)
	current.Store(&secrets[1])
	ofEach(t, c, 10*time.Second) // with both
	named.Set(tokens[1:], time.Now())
	ofEach(t, c, 10*time.Second) // the first is revoked
	named.Set(nil, time.Now())
	if _, err := c.Next(t.Context(), "order"); !errors.Is(err, leaf.ErrUnauthenticated) {
		t.Errorf("without a token that counts: %v", err)
	}
}
