package fence

import (
	"context"
	"fmt"

	"github.com/leaf-idgen/leaf"
)

// enter waits until it is known how ranges of the tag are taken now: under the fence,
// without it, or not at all.
func (c *cluster) enter(parent context.Context, l *Load) error {
	rt := c.fence.cfg.Runtime
	ctx, cancel := rt.WithTimeout(parent, c.fence.cfg.Timeout)
	defer cancel()
	for {
		c.mu.Lock()
		phase, space, merges, outage, changed := c.phase, c.space, c.merges, c.outage, c.changed
		entered := phase == fallen && outage != nil && outage.Enter()
		c.mu.Unlock()
		switch {
		case entered:
			if err := c.suspicion(l.tag); err != nil {
				outage.End()
				return err
			}
			l.outage, l.last = outage, c.seen.of(l.tag).End
			return nil
		case phase == opened:
			l.space, l.merges = space, merges
			return nil
		case phase == fallen:
			return c.notReady()
		}
		if rt.Wait(ctx, changed, 0) != nil {
			return c.notReady()
		}
	}
}

func (c *cluster) notReady() error {
	return fmt.Errorf("%w: cluster fence %q does not answer", leaf.ErrNotReady, c.name)
}

// look completes a load with the tag's entry. An entry that is missing or lower
// although this node's numbers must be in it, or older than one that was seen, proves
// that the fence forgot something: there is no range until it is merged again. (A
// give-back that ended between the two fences leaves a lower entry, too. Then merging
// costs the tail.) What the node only heard of a repair is in the row, and in the cluster
// fence only if a node under that fence carried the repair out.
func (c *cluster) look(ctx context.Context, l *Load) error {
	own, seen := c.fence.reserved(l.tag), c.seen.of(l.tag)
	e, ok, err := c.read(ctx, l.space, l.tag)
	if err != nil {
		return err
	}
	what := ""
	switch {
	case !ok && (own > 0 || seen.space == l.space):
		what = fmt.Sprintf("tag %q has none, but this node holds numbers up to %d", l.tag, own)
	case ok && e.End < own:
		what = fmt.Sprintf("tag %q ends at %d, but this node holds numbers up to %d", l.tag, e.End, own)
	case ok && seen.space == l.space && e.Version < seen.Version:
		what = fmt.Sprintf("tag %q is at version %d and was at %d", l.tag, e.Version, seen.Version)
	}
	if what != "" {
		c.seen.set(l.tag, Held{Entry: Entry{End: seen.End}}) // any version may come
		c.lost(l.space, what)
		return fmt.Errorf("%w: cluster fence %q lost entries: %s", leaf.ErrNotReady, c.name, what)
	}
	if ok {
		l.old = &e
		c.seen.set(l.tag, Held{l.space, e})
	}
	return nil
}
