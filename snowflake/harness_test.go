package snowflake_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/leaf-idgen/leaf/snowflake"
)

// start is where the clock of most tests begins: 2026-11-21 00:00:00 UTC, ten
// seconds after which is a whole second of the layouts with the Leaf epoch too.
const start = int64(1795219200_000)

// clock is a wall clock without a monotonic part that moves only when it is told
// to: by step, and by a Sleep, which takes as long as it was asked for.
type clock struct {
	mu     sync.Mutex
	t      time.Time
	cost   time.Duration   // that a Now adds
	over   time.Duration   // that a Sleep takes longer
	frozen bool            // Sleep does not move the clock
	slept  []time.Duration // what Sleep was asked for
	onNow  func()          // runs once, at the next Now, before the clock is read
	onWait func()          // runs once, at the next Sleep, in place of the wait
}

func newClock(unixMilli int64) *clock { return &clock{t: time.UnixMilli(unixMilli)} }

func (c *clock) now() time.Time {
	c.mu.Lock()
	hook := c.onNow
	c.onNow = nil
	c.mu.Unlock()
	if hook != nil {
		hook()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(c.cost)
	return c.t
}

func (c *clock) sleep(ctx context.Context, d time.Duration) error {
	c.mu.Lock()
	hook := c.onWait
	c.onWait = nil
	c.slept = append(c.slept, d)
	if hook == nil && !c.frozen {
		c.t = c.t.Add(d + c.over)
	}
	c.mu.Unlock()
	if hook != nil {
		hook()
	}
	return ctx.Err()
}

func (c *clock) step(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func (c *clock) set(unixMilli int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = time.UnixMilli(unixMilli)
}

func (c *clock) atNow(hook func())  { c.mu.Lock(); defer c.mu.Unlock(); c.onNow = hook }
func (c *clock) atWait(hook func()) { c.mu.Lock(); defer c.mu.Unlock(); c.onWait = hook }

// waits returns and forgets what Sleep was asked for.
func (c *clock) waits() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.slept
	c.slept = nil
	return s
}

// config is a configuration on c, without a bound and with seeded chance.
func (c *clock) config(l snowflake.Layout) snowflake.Config {
	var mu sync.Mutex
	chance := rand.New(rand.NewPCG(1, 2))
	return snowflake.Config{
		Layout: l, Worker: 1, Bound: snowflake.NoBound,
		Now: c.now, Sleep: c.sleep,
		Rand: func() uint64 { mu.Lock(); defer mu.Unlock(); return chance.Uint64() },
	}
}

// small has 8 numbers per millisecond, which start at 0 or 1.
func small() snowflake.Layout {
	return snowflake.Layout{Epoch: start - 1000, Unit: time.Millisecond, TimeBits: 30, WorkerBits: 3, SequenceBits: 3}
}

// tt is what *testing.T and *rapid.T share.
type tt interface {
	Helper()
	Fatalf(format string, args ...any)
}

func generator(t tt, c snowflake.Config) *snowflake.Generator {
	t.Helper()
	g, err := snowflake.New(c)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return g
}

func next(t tt, g *snowflake.Generator) int64 {
	t.Helper()
	id, err := g.Next(context.Background())
	if err != nil {
		t.Fatalf("Next: %v", err)
	}
	return id
}

// parts takes one ID and returns its fields.
func parts(t tt, g *snowflake.Generator) snowflake.Parts {
	t.Helper()
	return decode(t, g, next(t, g))
}

func decode(t tt, g *snowflake.Generator, id int64) snowflake.Parts {
	t.Helper()
	p, err := g.Layout().Decode(id)
	if err != nil {
		t.Fatalf("ID %d: %v", id, err)
	}
	return p
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error %v, want %v", err, want)
	}
}

func refused(t *testing.T, g *snowflake.Generator, want error) {
	t.Helper()
	id, err := g.Next(t.Context())
	if !errors.Is(err, want) || id != 0 {
		t.Fatalf("Next = %d, %v; want 0, %v", id, err, want)
	}
}

// fill takes IDs until the unit of the last one is used up, and returns that unit.
func fill(t tt, g *snowflake.Generator) int64 {
	t.Helper()
	for {
		p := parts(t, g)
		if p.Sequence == 1<<g.Layout().SequenceBits-1 {
			return p.Unit
		}
	}
}
