package fence

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/leaf-idgen/leaf"
)

// Lower takes both fences down before a tail of the tag's last range goes back to the store,
// once, in the order of rule G. issued is the end of what this node issued, unused is the
// tail, and held what Admit returned for the range. After an error the tail is lost.
//
// The cluster fence is lowered first, by compare-and-set from the range's end: a node that
// has read it before cannot take the lowered row for a regress. The own fence goes down to
// the end of what was issued before the row does, so that a crash in between leaves the row
// above the fence: no number is issued twice, and no false alarm is raised. It goes no less
// far down, because the nodes that own the numbers in between may lower the row too.
//
// From here on this node tells repairs of the tail's end, until Returned.
func (f *Fence) Lower(ctx context.Context, tag string, issued int64, unused leaf.Range, held Held) error {
	mark := f.Mark(tag)
	if mark.Latched {
		return errors.New("the tag is latched")
	}
	if mark.High != unused.Hi {
		return fmt.Errorf("the fence is at %d: a repair or a later range raised it", mark.High)
	}
	if f.cluster != nil {
		if err := f.cluster.lower(ctx, tag, held, unused); err != nil {
			return err
		}
	}
	f.returns(tag, unused.Hi)
	if err := f.lower(tag, mark, issued); err != nil {
		f.Returned(tag)
		return err
	}
	return nil
}

// returns notes that the return of a tail that ends at hi may reach the database from now
// on.
func (f *Fence) returns(tag string, hi int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.returning[tag] = hi
}

// Returned notes that the return of a tail has ended: it never reaches the database
// later.
func (f *Fence) Returned(tag string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.returning, tag)
}

// Returning returns the tags of tails whose return may still reach the database.
func (f *Fence) Returning() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Sorted(maps.Keys(f.returning))
}
