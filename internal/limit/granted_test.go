package limit_test

import (
	"errors"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/internal/limit"
)

// named returns a gate in front of an engine that costs nothing, with one named token.
func named(t testing.TB, words ...string) (g *limit.Gate, tokens *auth.Tokens, set *auth.Named, secret string) {
	t.Helper()
	set = auth.NewNamed()
	tokens = auth.NewTokens("fixed").WithNamed(set, nil)
	secret, digest := auth.NewSecret()
	r, err := auth.ParseRoles(words)
	if err != nil {
		t.Fatal(err)
	}
	set.Set([]auth.Token{{Name: "shop", Digest: digest, Roles: r}}, time.Now())
	g, err = limit.New(leaf.Issuers{Segment: new(counting), Snowflake: new(counting), Sequence: new(counted)}, limit.Config{Tokens: tokens})
	if err != nil {
		t.Fatal(err)
	}
	return g, tokens, set, secret
}

// TestNamedToken: roles hold for each request of a connection, limits know the client by the
// name of its token, and a revoked token counts at once on issuers that a server has kept.
func TestNamedToken(t *testing.T) {
	t.Parallel()
	g, tokens, set, secret := named(t, "issue:order*")
	g.Set(limit.Rules{Clients: map[string]limit.Rule{"shop": {Rate: 10}}})
	all, err := g.Open(leaf.Credentials{Token: secret, Name: "somebody else"})
	if err != nil {
		t.Fatal(err)
	}
	next := func(tag string) error { _, err := all.Segment.Next(t.Context(), tag); return err }
	nextN := func(n int) error { _, err := all.Segment.NextN(t.Context(), "orders", n); return err }
	sequence := func(name string) error {
		_, err := all.Sequencer().NextEach(t.Context(), name, []leaf.SequenceRequest{{Entity: "7", Count: 1}})
		return err
	}
	snowflake := func() error { _, err := all.Snowflake.Next(t.Context(), ""); return err }
	for name, c := range map[string]struct{ got, want error }{
		"a tag of the token":      {next("order"), nil},
		"a batch of it":           {nextN(2), nil},
		"another tag":             {next("user"), leaf.ErrForbidden},
		"snowflake mode":          {snowflake(), leaf.ErrForbidden},
		"a sequence":              {sequence("order:messages"), nil},
		"another sequence":        {sequence("chat"), leaf.ErrForbidden},
		"more than its limit":     {nextN(11), leaf.ErrThrottled},
		"reading":                 {tokens.MayRead(leaf.Credentials{Token: secret}), leaf.ErrForbidden},
		"reading with auth.token": {tokens.MayRead(leaf.Credentials{Token: "fixed"}), nil},
		"reading without a token": {tokens.MayRead(leaf.Credentials{}), leaf.ErrUnauthenticated},
	} {
		if !errors.Is(c.got, c.want) {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	set.Set(nil, time.Now())
	for name, err := range map[string]error{"Next": next("order"), "NextN": nextN(1), "snowflake": snowflake()} {
		if !errors.Is(err, leaf.ErrUnauthenticated) {
			t.Errorf("%s with a revoked token: %v", name, err)
		}
	}
}

// TestNamedTokenCostsNoMemory: the roles are asked for each ID.
func TestNamedTokenCostsNoMemory(t *testing.T) {
	g, _, _, secret := named(t, "issue:user", "issue:order*")
	all, err := g.Open(leaf.Credentials{Token: secret})
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { _, _ = all.Segment.Next(t.Context(), "order") }); n > 0 {
		t.Errorf("%v allocations for an ID", n)
	}
}
