package fence

import (
	"context"
	"errors"
	"fmt"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
)

// read is Cluster.Read with a deadline. After an error the fence is in doubt.
func (c *cluster) read(parent context.Context, space, tag string) (Entry, bool, error) {
	type answer struct {
		e  Entry
		ok bool
	}
	got, err := bounded.Do(parent, &c.calls, c.fence.cfg.Timeout, func(ctx context.Context) (n answer, err error) {
		n.e, n.ok, err = c.store.Read(ctx, space, tag)
		return n, err
	})
	if err != nil {
		c.doubt(space)
		return Entry{}, false, fmt.Errorf("read the cluster fence of tag %q: %w", tag, err)
	}
	if got.ok {
		c.seen.add(tag, Held{space: space, Entry: got.e})
	}
	return got.e, got.ok, nil
}

// swap is Cluster.Swap with a deadline. After an error other than ErrMoved the fence is in
// doubt.
func (c *cluster) swap(parent context.Context, space, tag string, old *Entry, end int64) (Entry, error) {
	e, err := bounded.Do(parent, &c.calls, c.fence.cfg.Timeout, func(ctx context.Context) (Entry, error) {
		return c.store.Swap(ctx, space, tag, old, end)
	})
	if err != nil {
		if !errors.Is(err, ErrMoved) {
			c.doubt(space)
		}
		return Entry{}, fmt.Errorf("move the cluster fence of tag %q to %d: %w", tag, end, err)
	}
	c.seen.add(tag, Held{space: space, Entry: e})
	return e, nil
}

// lower moves the tag's entry down to the start of unused, if the entry still is exactly wrote,
// which this node wrote for the end of unused (rule G).
func (c *cluster) lower(ctx context.Context, tag string, wrote Held, unused leaf.Range) error {
	if wrote.space == "" || wrote.End != unused.Hi {
		return errors.New("the range was taken without the cluster fence")
	}
	_, err := c.swap(ctx, wrote.space, tag, &wrote.Entry, unused.Lo)
	return err
}
