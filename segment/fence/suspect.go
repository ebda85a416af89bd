package fence

import (
	"fmt"

	"github.com/leaf-idgen/leaf"
)

// A degraded load whose range lies below the entry that was seen last may be the proof
// that the store lost commits: the statement has moved the row, so a retry could pass
// the entry although other nodes issued what lies above it. The tag is a suspect then.
// It loads nothing until the cluster fence answers and judges the row (rule A). It may
// be innocent: a node that gives numbers back lowers the entry and then the row.

// suspect stops degraded loads of a tag.
func (c *cluster) suspect(tag, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.suspects[tag] = what
}

// acquit ends a suspicion: a load has compared the row with the fence.
func (c *cluster) acquit(tag string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.suspects, tag)
}

// suspicion returns why the tag must not be loaded without the fence, nil if it may.
func (c *cluster) suspicion(tag string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if what := c.suspects[tag]; what != "" {
		return fmt.Errorf("%w: %s; the tag loads nothing until the fence answers", leaf.ErrNotReady, what)
	}
	return nil
}
