package fence

import (
	"context"
	"fmt"

	"github.com/leaf-idgen/leaf"
)

// enter waits until the state of the cluster fence is known, and notes in l whether the load
// is under the fence or degraded. Error: leaf.ErrNotReady if the tag may not be loaded now.
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
			if l.Before.Suspect {
				outage.End()
				return suspicion(l.tag)
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
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Errorf("%w: cluster fence %q %s", leaf.ErrNotReady, c.name, c.trouble)
}

// look reads the tag's entry for a load. The cluster fence has lost entries if the entry is
// missing or lower although it must hold this node's numbers, or if it is older than one that
// this process saw. Then the node merges its marks again before it loads.
//
// A return of unused IDs that failed between the two fences also leaves a lower entry; the
// merge then costs the unused IDs. A number that the node only heard of in a repair need not
// be in the entry: it is there only if a node under this cluster fence ran the repair.
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
		c.seen.set(l.tag, Held{Entry: Entry{End: seen.End}}) // the version may be any from now on
		c.lost(l.space, what)
		return fmt.Errorf("%w: cluster fence %q lost entries: %s", leaf.ErrNotReady, c.name, what)
	}
	if ok {
		l.old = &e
		c.seen.set(l.tag, Held{space: l.space, Entry: e})
	}
	return nil
}
