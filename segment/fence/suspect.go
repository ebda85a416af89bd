package fence

import (
	"errors"
	"fmt"

	"github.com/leaf-idgen/leaf"
)

// A degraded load may get a range below the newest entry that this node saw. Either the store
// lost commits, or a node returned unused IDs, which lowers the entry and then the row. The
// statement has moved the row, so a retry could pass the entry although other nodes issued
// the numbers above the row. Therefore the tag is a suspect: it loads nothing until the
// cluster fence answers and is compared with the row (rule A).

// ErrSuspect means that the tag is a suspect. It says nothing about other tags.
var ErrSuspect = errors.New("the tag loads nothing until the fence answers")

// suspect stops the degraded loads of a tag. what is the evidence.
func (c *cluster) suspect(tag, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.suspects[tag] = what
}

// acquit ends the suspicion, after a load has compared the row with the cluster fence.
func (c *cluster) acquit(tag string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.suspects, tag)
}

// suspicion returns why the tag must not be loaded without the cluster fence, or nil.
func (c *cluster) suspicion(tag string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if what := c.suspects[tag]; what != "" {
		return fmt.Errorf("%w: %s; %w", leaf.ErrNotReady, what, ErrSuspect)
	}
	return nil
}
