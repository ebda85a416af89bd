package servertest

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"github.com/leaf-idgen/leaf"
)

// call is what an issuer was asked.
type call struct {
	mode, tag string
	n         int
}

func (c call) String() string { return fmt.Sprintf("%s %q %d", c.mode, c.tag, c.n) }

// fake is what stands behind a server: issuers of both modes that answer as the case
// says and note what they were asked.
type fake struct {
	answer func(ctx context.Context, c call) ([]leaf.Range, error)

	mu    sync.Mutex
	calls []call
}

// giving returns a fake that answers every call with ranges.
func giving(ranges ...leaf.Range) *fake {
	return &fake{answer: func(context.Context, call) ([]leaf.Range, error) { return slices.Clone(ranges), nil }}
}

// failing returns a fake that answers every call with err.
func failing(err error) *fake {
	return &fake{answer: func(context.Context, call) ([]leaf.Range, error) { return nil, err }}
}

// counting returns a fake that counts from 1, whatever the mode and the tag.
func counting() *fake {
	var mu sync.Mutex
	last := int64(0)
	return &fake{answer: func(_ context.Context, c call) ([]leaf.Range, error) {
		mu.Lock()
		defer mu.Unlock()
		r := leaf.Range{Lo: last + 1, Hi: last + 1 + int64(c.n)}
		last += int64(c.n)
		return []leaf.Range{r}, nil
	}}
}

// access gives the fake's issuers to every client.
func (f *fake) access() leaf.Access {
	return leaf.Anyone(fakeIssuer{f, segment}, fakeIssuer{f, snowflake})
}

// asked returns the calls since the last time.
func (f *fake) asked() []call {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := f.calls
	f.calls = nil
	return calls
}

type fakeIssuer struct {
	*fake
	mode string
}

// Next implements leaf.Issuer.
func (i fakeIssuer) Next(ctx context.Context, tag string) (int64, error) {
	ranges, err := i.NextN(ctx, tag, 1)
	if err != nil {
		return 0, err
	}
	return ranges[0].Lo, nil
}

// NextN implements leaf.Issuer.
func (i fakeIssuer) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	c := call{i.mode, tag, n}
	i.mu.Lock()
	i.calls = append(i.calls, c)
	i.mu.Unlock()
	return i.answer(ctx, c)
}

// gate is an Access that wants a token, and notes what it is shown.
type gate struct {
	token string
	inner leaf.Access

	mu    sync.Mutex
	shown []leaf.Credentials
}

// Guarded implements leaf.Access.
func (*gate) Guarded() bool { return true }

// Open implements leaf.Access.
func (g *gate) Open(c leaf.Credentials) (*leaf.Issuers, error) {
	g.mu.Lock()
	c.Address = netip.Addr{} // which differs between protocols and their absence
	g.shown = append(g.shown, c)
	g.mu.Unlock()
	if c.Token != g.token {
		return nil, fmt.Errorf("%w: this server wants a token", leaf.ErrUnauthenticated)
	}
	return g.inner.Open(c)
}

func (g *gate) seen() []leaf.Credentials {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.shown)
}
