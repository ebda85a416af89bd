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
// node can only check its own. It may be repeated, and must be run on every node
// that latched the tag. It returns the new max_id.
//
// Errors: leaf.ErrBadRequest, leaf.ErrConflict if above lies below this node's own
// fence, leaf.ErrUnknownTag, leaf.ErrNotReady if the store does not answer.
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
	mark := a.fence.mark(tag)
	if above < mark.High {
		return 0, fmt.Errorf("%w: this node holds numbers of tag %q up to %d, so above=%d could repeat some; use %d or more", leaf.ErrConflict, tag, mark.High, above, mark.High)
	}
	s := a.shards[route]
	if err := s.admits(); err != nil {
		return 0, err
	}
	maxID, err := call(ctx, s, a.cfg.LoadTimeout, func(ctx context.Context) (int64, error) {
		return s.store.Raise(ctx, tag, above)
	})
	if err != nil {
		return 0, fmt.Errorf("raise max_id of tag %q: %w", tag, storeError(err))
	}
	if mark.Latched {
		if err := a.fence.release(tag, mark); errors.Is(err, errOvertaken) {
			return 0, fmt.Errorf("%w: the state of tag %q changed meanwhile; look at it and run the command again if need be", leaf.ErrConflict, tag)
		} else if err != nil {
			return 0, fmt.Errorf("%w: max_id of tag %q is %d, but its release is not on the disk yet: %w", leaf.ErrNotReady, tag, maxID, err)
		}
		a.log.Info("tag repaired and released", "tag", tag, "max_id", maxID, "fence", mark.High)
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

// storeError adds leaf.ErrNotReady to an error that has no class of its own.
func storeError(err error) error {
	if leaf.ClassOf(err).Err == nil {
		return fmt.Errorf("%w: %w", leaf.ErrNotReady, err)
	}
	return err
}
