package segment

import (
	"context"
	"errors"
	"fmt"

	"github.com/leaf-idgen/leaf"
)

// held is an entry of the cluster fence together with its incarnation; the zero
// held is none.
type held struct {
	space string
	FenceEntry
}

// guard is what one load learned of the cluster fence before it reserved a range.
// The zero guard is that of a node without a cluster fence.
type guard struct {
	cluster *cluster
	space   string
	merges  int         // how many merges had begun
	old     *FenceEntry // the tag's entry, nil if it has none
	last    int64       // degraded: the end of the entry when it was last seen
	outage  *group      // degraded: counts this load until leave
}

func (g guard) leave() {
	if g.outage != nil {
		g.outage.end()
	}
}

// blockedError is why a load failed for which its store is not to blame.
type blockedError struct{ error }

func (e *blockedError) Unwrap() error { return e.error }

func isBlocked(err error) bool {
	_, ok := errors.AsType[*blockedError](err)
	return ok
}

// guard reads the cluster fence before a load (rule C). While nobody knows how the
// fence is, the load waits for the answer. The caller calls leave when the range is
// admitted or dropped.
func (t *Tag) guard() (guard, error) {
	c := t.alloc.cluster
	if c == nil {
		return guard{}, nil
	}
	g, err := c.enter(t.alloc.reading, t.name)
	if err == nil {
		err = t.look(&g)
	}
	if err != nil {
		return guard{}, &blockedError{err}
	}
	return g, nil
}

// enter waits until it is known how ranges of the tag are taken now: under the fence,
// without it, or not at all.
func (c *cluster) enter(parent context.Context, tag string) (guard, error) {
	a := c.alloc
	ctx, cancel := a.rt.WithTimeout(parent, a.cfg.LoadTimeout)
	defer cancel()
	for {
		c.mu.Lock()
		phase, space, merges, outage, changed := c.phase, c.space, c.merges, c.outage, c.changed
		entered := phase == fallen && outage != nil && outage.enter()
		if entered && c.dirty != nil {
			c.dirty[tag] = true
		}
		c.mu.Unlock()
		switch {
		case entered:
			if err := c.suspicion(tag); err != nil {
				outage.end()
				return guard{}, err
			}
			return guard{cluster: c, outage: outage}, nil
		case phase == opened:
			return guard{cluster: c, space: space, merges: merges}, nil
		case phase == fallen:
			return guard{}, c.notReady()
		}
		if a.rt.Wait(ctx, changed, 0) != nil {
			return guard{}, c.notReady()
		}
	}
}

func (c *cluster) notReady() error {
	return fmt.Errorf("%w: cluster fence %q does not answer", leaf.ErrNotReady, c.name)
}

// look completes the guard with the tag's entry. An entry that is missing or lower
// although this node's numbers must be in it, or older than one that was seen, proves
// that the fence forgot something: there is no range until it is merged again. (A
// give-back that ended between the two fences leaves a lower entry, too. Then merging
// costs the tail.) What the node only heard of a repair is in the row, and in the cluster
// fence only if a node under that fence carried the repair out.
func (t *Tag) look(g *guard) error {
	own, seen := t.alloc.fence.reserved(t.name), g.cluster.seen.of(t.name)
	if g.outage != nil {
		g.last = seen.End
		return nil
	}
	e, ok, err := g.cluster.read(t.alloc.base, g.space, t.name)
	if err != nil {
		return err
	}
	what := ""
	switch {
	case !ok && (own > 0 || seen.space == g.space):
		what = fmt.Sprintf("tag %q has none, but this node holds numbers up to %d", t.name, own)
	case ok && e.End < own:
		what = fmt.Sprintf("tag %q ends at %d, but this node holds numbers up to %d", t.name, e.End, own)
	case ok && seen.space == g.space && e.Version < seen.Version:
		what = fmt.Sprintf("tag %q is at version %d and was at %d", t.name, e.Version, seen.Version)
	}
	if what != "" {
		g.cluster.seen.set(t.name, held{FenceEntry: FenceEntry{End: seen.End}}) // any version may come
		g.cluster.lost(g.space, what)
		return fmt.Errorf("%w: cluster fence %q lost entries: %s", leaf.ErrNotReady, g.cluster.name, what)
	}
	if ok {
		g.old = &e
		g.cluster.seen.set(t.name, held{g.space, e})
	}
	return nil
}

// errBelow: the cluster fence holds numbers above the range's start.
var errBelow = errors.New("segment: range below the cluster fence")

// pass takes a range that was just reserved through the cluster fence: from here on
// every node refuses what lies below its end. Errors: errBelow for a regress;
// ErrFenceMoved if another node was faster, after which the range is dropped; any
// other error means that nobody knows, and the range is dropped as well.
//
// A range below the entry is a regress only if the entry still is what was read
// before the range was reserved: otherwise a node may have given numbers back, which
// lowers the entry first and the row afterwards. A Swap to the same end tells.
func (t *Tag) pass(g guard, r leaf.Range) (held, error) {
	switch {
	case g.cluster == nil:
		return held{}, nil
	case g.outage != nil:
		if r.Lo < g.last {
			g.cluster.suspect(t.name, fmt.Sprintf("the store offered %v of tag %q, but the cluster fence held numbers up to %d when it last answered", r, t.name, g.last))
			return held{}, &blockedError{g.cluster.suspicion(t.name)}
		}
		return held{}, nil
	}
	below := g.old != nil && r.Lo < g.old.End
	end := r.Hi
	if below {
		end = g.old.End
	}
	e, err := g.cluster.swap(t.alloc.base, g.space, t.name, g.old, end)
	switch {
	case errors.Is(err, ErrFenceMoved):
		return held{}, err
	case err != nil:
		return held{}, &blockedError{err}
	}
	g.cluster.acquit(t.name) // the fence has judged the row now
	if below {
		return held{}, errBelow
	}
	return held{g.space, e}, nil
}

// recheck returns an error if a merge has begun since the load read the fence. The load
// has set its mark: a merge that begins later reads it.
func (g guard) recheck() error {
	if g.cluster == nil || g.outage != nil {
		return nil
	}
	g.cluster.mu.Lock()
	defer g.cluster.mu.Unlock()
	if g.cluster.merges == g.merges {
		return nil
	}
	return &blockedError{fmt.Errorf("%w: this node has merged its fences into cluster fence %q meanwhile", leaf.ErrNotReady, g.cluster.name)}
}

// lower takes the cluster fence down to the start of a tail, if it still is exactly
// what this node wrote for the tail's end (rule G).
func (c *cluster) lower(ctx context.Context, t *tail) error {
	if t.wrote.space == "" || t.wrote.End != t.unused.Hi {
		return errors.New("the range was taken without the cluster fence")
	}
	_, err := c.swap(ctx, t.wrote.space, t.tag.name, &t.wrote.FenceEntry, t.unused.Lo)
	return err
}
