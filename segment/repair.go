package segment

import (
	"context"
	"errors"
	"fmt"

	"github.com/leaf-idgen/leaf"
)

// Mark returns what this node's fence knows of a tag; the zero Mark if nothing.
func (a *Allocator) Mark(tag string) Mark { return a.fence.mark(tag) }

// Repair moves the tag's max_id to at least above and releases the tag if it is
// latched. above must be higher than every number that any node ever issued: this
// node can only check its own, and those in the cluster fence. With a cluster fence
// above may be 0: the end that it holds then decides, and its entry is raised to
// above where it lies below. Repair may be repeated, and must be run on every node
// that latched the tag. It returns the new max_id.
//
// Errors: leaf.ErrBadRequest; leaf.ErrConflict if above lies below a fence, or is 0
// and the cluster fence has no entry; leaf.ErrUnknownTag; leaf.ErrNotReady if the
// store or the cluster fence does not answer.
func (a *Allocator) Repair(ctx context.Context, tag string, above int64) (int64, error) {
	if err := leaf.ValidateTag(tag); err != nil {
		return 0, err
	}
	if above < 0 || above > MaxMaxID {
		return 0, leaf.BadField("above", above, fmt.Sprintf("must be 0 to %d", int64(MaxMaxID)))
	}
	route := a.router.Route(tag)
	if route < 0 {
		return 0, unknownTag(tag)
	}
	s := a.shards[route]
	if err := s.admits(); err != nil {
		return 0, err
	}
	mark := a.fence.mark(tag)
	above, space, err := a.repairAbove(ctx, tag, above, mark)
	if err != nil {
		return 0, err
	}
	maxID, err := call(ctx, &s.calls, a.cfg.LoadTimeout, func(ctx context.Context) (int64, error) {
		return s.store.Raise(ctx, tag, above)
	})
	missing := errors.Is(err, leaf.ErrUnknownTag)
	if err != nil && (!missing || !mark.Latched) {
		return 0, fmt.Errorf("raise max_id of tag %q: %w", tag, storeError(err))
	}
	if a.cluster != nil {
		if err := a.cluster.raiseTo(ctx, space, tag, above); err != nil {
			return 0, fmt.Errorf("max_id of tag %q is %d, but the tag is not released yet: %w", tag, maxID, storeError(err))
		}
	}
	if mark.Latched {
		floor := mark.High
		if missing {
			floor = above // else the row is there, and another node may give numbers back to below it (rule M)
		}
		if err := a.fence.release(tag, mark, floor); errors.Is(err, errOvertaken) {
			return 0, fmt.Errorf("%w: the state of tag %q changed meanwhile; look at it and run the command again if need be", leaf.ErrConflict, tag)
		} else if err != nil {
			return 0, fmt.Errorf("%w: max_id of tag %q is %d, but its release is not on the disk yet: %w", leaf.ErrNotReady, tag, maxID, err)
		}
		a.log.Info("tag repaired and released", "tag", tag, "max_id", maxID, "fence", mark.High, "above", above)
		if missing {
			return 0, fmt.Errorf("%w: tag %q is released; a new row below %d will be refused", leaf.ErrUnknownTag, tag, above)
		}
	} else if a.fence.mark(tag).Latched {
		return 0, fmt.Errorf("%w: tag %q latched while it was being repaired; run the command again", leaf.ErrConflict, tag)
	}
	if t := a.tag(tag); t != nil {
		t.mu.Lock()
		t.tryAgainLocked()
		t.mu.Unlock()
	}
	return maxID, nil
}

// repairAbove returns the number that nothing may be issued below of: above, if no
// fence contradicts it, or what the fences say if it is 0. space is the incarnation
// of the cluster fence that was asked.
func (a *Allocator) repairAbove(ctx context.Context, tag string, above int64, mark Mark) (_ int64, space string, err error) {
	known, who := mark.High, "this node holds"
	if a.cluster != nil {
		e, ok, in, err := a.cluster.entry(ctx, tag)
		space = in
		switch {
		case err != nil:
			return 0, "", storeError(err)
		case !ok && above == 0:
			return 0, "", fmt.Errorf("%w: the cluster fence has no entry of tag %q: give the number above which to issue (--above)", leaf.ErrConflict, tag)
		case e.End > known:
			known, who = e.End, "the cluster fence holds"
		}
		if above == 0 {
			above = known
		}
	}
	if above < known {
		return 0, "", fmt.Errorf("%w: %s numbers of tag %q up to %d, so above=%d could repeat some; use %d or more", leaf.ErrConflict, who, tag, known, above, known)
	}
	return above, space, nil
}

// entry returns the tag's entry as of now, for management commands. Error:
// leaf.ErrNotReady while the fence is not open.
func (c *cluster) entry(ctx context.Context, tag string) (e FenceEntry, ok bool, space string, err error) {
	g, err := c.enter(ctx, tag)
	if err != nil {
		return e, false, "", err
	}
	defer g.leave()
	if g.outage != nil {
		return e, false, "", c.notReady()
	}
	e, ok, err = c.read(ctx, g.space, tag)
	return e, ok, g.space, err
}

// storeError adds leaf.ErrNotReady to an error that has no class of its own.
func storeError(err error) error {
	if leaf.ClassOf(err).Err == nil {
		return fmt.Errorf("%w: %w", leaf.ErrNotReady, err)
	}
	return err
}
