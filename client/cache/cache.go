package cache

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
)

// Cache is a leaf.Issuer that holds ranges of its source. All methods are safe for
// concurrent use.
type Cache struct {
	source leaf.Issuer
	cfg    Config
	index  index

	base   context.Context //nolint:containedctx // of the fetches, which serve many callers: it ends with Close
	cancel context.CancelFunc

	tasks *bounded.Group // fetches and rests; Close closes it

	fetches, failures, fetched, unused atomic.Int64
}

var _ leaf.Issuer = (*Cache)(nil)

// errClosed is the answer after Close.
var errClosed = fmt.Errorf("%w: the cache is closed", leaf.ErrNotReady)

// New returns a cache of source. The caller closes it. Error: leaf.ErrBadRequest.
func New(source leaf.Issuer, cfg Config) (*Cache, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	c := &Cache{source: source, cfg: cfg, tasks: bounded.NewGroup(cfg.Runtime)}
	c.base, c.cancel = context.WithCancel(context.Background())
	c.index.init(cfg.MaxTags)
	return c, nil
}

// Next implements leaf.Issuer.
func (c *Cache) Next(ctx context.Context, tag string) (int64, error) {
	if t := c.index.get(tag); t != nil {
		return t.Next(ctx)
	}
	t, err := c.Tag(tag)
	if err != nil {
		return 0, err
	}
	if t == nil {
		return c.source.Next(ctx, tag)
	}
	return t.Next(ctx)
}

// NextN implements leaf.Issuer. A call that needs as many IDs as the next fetch would
// bring goes through to the source.
func (c *Cache) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	if n < 1 || n > leaf.MaxBatch {
		return nil, badCount(n)
	}
	t, err := c.Tag(tag)
	if err != nil {
		return nil, err
	}
	if t == nil {
		return c.source.NextN(ctx, tag, n)
	}
	return t.NextN(ctx, n)
}

// Tag returns the buffer of one tag, which spares the lookup of its name. It is nil if
// there are Config.MaxTags already; calls for the tag then go to the source. Errors:
// leaf.ErrBadRequest; leaf.ErrNotReady after Close.
func (c *Cache) Tag(name string) (*Tag, error) {
	if t := c.index.get(name); t != nil {
		return t, nil
	}
	if err := leaf.ValidateTag(name); err != nil {
		return nil, err
	}
	// Close closes tasks before it lists the tags, so it finds every tag that is made here.
	t := c.index.add(name, func() *Tag {
		if c.tasks.Closed() {
			return nil
		}
		return newTag(c, name)
	})
	if t == nil && c.tasks.Closed() {
		return nil, errClosed
	}
	return t, nil
}

// Stats says what went through the cache since it was made.
type Stats struct {
	Tags     int
	Fetches  int64 // calls of the source that brought IDs
	Failures int64 // calls of the source that failed
	Fetched  int64 // IDs brought
	Held     int64 // IDs in memory that were not taken yet
	Unused   int64 // IDs that were in memory at Close, came after it, or were dropped: they are lost
}

// Stats returns the counters. While calls are under way they need not add up.
func (c *Cache) Stats() Stats {
	s := Stats{Fetches: c.fetches.Load(), Failures: c.failures.Load(), Fetched: c.fetched.Load(), Unused: c.unused.Load()}
	for _, t := range c.index.all() {
		s.Tags++
		s.Held += t.held()
	}
	return s
}

// Close stops handing out and waits for the fetches under way, which it ends, or for
// ctx. What is in memory is counted in Stats.Unused. Calls after it get
// leaf.ErrNotReady; a call that went through to the source before ends as the source says.
// It may be repeated.
func (c *Cache) Close(ctx context.Context) error {
	first := c.tasks.Close()
	c.cancel()
	if first {
		for _, t := range c.index.all() {
			t.close()
		}
	}
	if err := c.tasks.Idle(ctx); err != nil {
		return fmt.Errorf("close the cache: %w", err)
	}
	return nil
}
