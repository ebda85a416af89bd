package client

import (
	"context"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
)

// readyPoll is how often WaitReady looks.
const readyPoll = 10 * time.Millisecond

// WaitReady returns when a node has answered that it serves, for a program that wants to
// know at its start. Calls need not wait for it. Errors: leaf.ErrNotReady with the error
// of ctx if that ends before, or after Close.
func (c *Client) WaitReady(ctx context.Context) error {
	for {
		if c.closed.Load() {
			return errClosed
		}
		nodes := *c.nodes.list.Load()
		for _, n := range nodes {
			n.mu.Lock()
			state := n.state
			n.mu.Unlock()
			if state == StateUsable || state == StateSuspect {
				return nil
			}
		}
		if err := c.rt.Wait(ctx, nil, readyPoll); err != nil {
			if why := c.noNode(); why != nil {
				return fmt.Errorf("%w: %w", why, err)
			}
			return fmt.Errorf("%w: none of %d nodes has answered that it serves: %w", leaf.ErrNotReady, len(nodes), err)
		}
	}
}
