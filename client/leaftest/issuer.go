package leaftest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf"
)

// issuer counts.
type issuer struct {
	mu    sync.Mutex
	last  map[string]int64 // by tag; nil: any tag is known
	any   bool             // a tag that is not there begins at 1
	fails error
	delay time.Duration
}

// Next implements leaf.Issuer.
func (i *issuer) Next(ctx context.Context, tag string) (int64, error) {
	r, err := i.NextN(ctx, tag, 1)
	if err != nil {
		return 0, err
	}
	return r[0].Lo, nil
}

// NextN implements leaf.Issuer.
func (i *issuer) NextN(ctx context.Context, tag string, n int) ([]leaf.Range, error) {
	if err := i.obstacle(ctx); err != nil {
		return nil, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	last, known := i.last[tag]
	if !known && !i.any {
		return nil, fmt.Errorf("%w: %q", leaf.ErrUnknownTag, tag)
	}
	i.last[tag] = last + int64(n)
	return []leaf.Range{{Lo: last + 1, Hi: last + 1 + int64(n)}}, nil
}

// obstacle waits for the delay and returns the error that the test asked for.
func (i *issuer) obstacle(ctx context.Context) error {
	i.mu.Lock()
	fails, delay := i.fails, i.delay
	i.mu.Unlock()
	if delay > 0 {
		t := time.NewTimer(delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", leaf.ErrNotReady, ctx.Err())
		}
	}
	return fails
}
