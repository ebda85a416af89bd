package limit_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/limit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bubble runs f on a clock of its own, which stands at noon, 12 hours before midnight of
// UTC.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(12 * time.Hour) // the clock of a bubble begins at midnight of UTC
		f(t)
	})
}

// engine is an Issuer that does what its fields say.
type engine struct {
	err   error
	calls int
	ids   int
	wait  func(ctx context.Context) error // nil: no wait
}

func (e *engine) Next(ctx context.Context, tag string) (int64, error) {
	r, err := e.NextN(ctx, tag, 1)
	if err != nil {
		return 0, err
	}
	return r[0].Lo, nil
}

func (e *engine) NextN(ctx context.Context, _ string, n int) ([]leaf.Range, error) {
	e.calls++
	if n < 1 || n > leaf.MaxBatch {
		return nil, leaf.BadField("count", n, "is wrong")
	}
	if e.wait != nil {
		if err := e.wait(ctx); err != nil {
			return nil, err
		}
	}
	if e.err != nil {
		return nil, e.err
	}
	e.ids += n
	return []leaf.Range{{Lo: int64(e.ids - n), Hi: int64(e.ids)}}, nil
}

func newGate(t testing.TB, c limit.Config, segment, snowflake leaf.Issuer) *limit.Gate {
	t.Helper()
	g, err := limit.New(leaf.Issuers{Segment: segment, Snowflake: snowflake}, c)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func open(t testing.TB, g *limit.Gate, c leaf.Credentials) *leaf.Issuers {
	t.Helper()
	issuers, err := g.Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return issuers
}

func tags(name string, r limit.Rule) limit.Rules {
	return limit.Rules{Tags: map[string]limit.Rule{name: r}}
}

func clients(name string, r limit.Rule) limit.Rules {
	return limit.Rules{Clients: map[string]limit.Rule{name: r}}
}

// sharedCounter is an engine for many callers.
type sharedCounter struct{ last atomic.Int64 }

func (c *sharedCounter) Next(context.Context, string) (int64, error) { return c.last.Add(1), nil }

func (c *sharedCounter) NextN(_ context.Context, _ string, n int) ([]leaf.Range, error) {
	hi := c.last.Add(int64(n))
	return []leaf.Range{{Lo: hi - int64(n), Hi: hi}}, nil
}
