package limit_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/auth"
	"github.com/leaf-idgen/leaf/internal/limit"
)

// counting is an engine that costs nothing.
type counting struct{ n int64 }

func (c *counting) Next(context.Context, string) (int64, error) { c.n++; return c.n, nil }

func (c *counting) NextN(_ context.Context, _ string, n int) ([]leaf.Range, error) {
	return []leaf.Range{{Lo: c.n, Hi: c.n + int64(n)}}, nil
}

// BenchmarkNext is what the gate costs a request, beside an engine that costs nothing.
func BenchmarkNext(b *testing.B) {
	const much = limit.MaxRate
	for _, c := range []struct {
		name  string
		rules limit.Rules
	}{
		{"without rules", limit.Rules{}},
		{"rules of others", rulesFor(1000)},
		{"rate", limit.Rules{Tags: map[string]limit.Rule{"tag": {Rate: much}}}},
		{"quota", limit.Rules{Tags: map[string]limit.Rule{"tag": {Quota: much}}}},
		{"rate and quota of tag and client", limit.Rules{
			Tags: map[string]limit.Rule{"tag": {Rate: much, Quota: much}}, Clients: map[string]limit.Rule{"": {Rate: much, Quota: much}},
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			g, err := limit.New(leaf.Issuers{Segment: new(counting), Snowflake: new(counting)}, limit.Config{})
			if err != nil {
				b.Fatal(err)
			}
			g.Set(c.rules)
			issuers, err := g.Open(leaf.Credentials{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := issuers.Segment.Next(b.Context(), "tag"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
	b.Run("no gate", func(b *testing.B) {
		var i leaf.Issuer = new(counting)
		for b.Loop() {
			_, _ = i.Next(b.Context(), "tag")
		}
	})
}

// BenchmarkOpen is what a server pays per request or connection.
func BenchmarkOpen(b *testing.B) {
	g, err := limit.New(leaf.Issuers{Segment: new(counting), Snowflake: new(counting)}, limit.Config{Tokens: auth.NewTokens("0123456789abcdef0123456789abcdef")})
	if err != nil {
		b.Fatal(err)
	}
	for name, c := range map[string]leaf.Credentials{
		"nobody": {Token: "0123456789abcdef0123456789abcdef"},
		"name":   {Token: "0123456789abcdef0123456789abcdef", Name: "orders"},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := g.Open(c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func rulesFor(n int) limit.Rules {
	r := limit.Rules{Tags: map[string]limit.Rule{}, Clients: map[string]limit.Rule{}}
	for i := range n {
		r.Tags[fmt.Sprint("tag", i)] = limit.Rule{Rate: 1}
		r.Clients[fmt.Sprint("client", i)] = limit.Rule{Rate: 1}
	}
	return r
}
