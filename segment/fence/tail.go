package fence

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/leaf-idgen/leaf"
)

// Lower lowers both fences before the unused tail of the tag's last range returns to the store
// (rule G). Call it once. issued is the end of the issued IDs, unused is the tail, and held is
// the result of Admit for the range. After an error the tail is lost.
//
// The order: cluster fence, own fence, row. The cluster fence is lowered first, by a
// compare-and-set from the range's end, so that a node which has read it before does not take
// the lowered row for a regress. The own fence is lowered before the row, so that a crash
// between the two leaves the row above the fence: no ID repeats, and no false alarm is raised.
// The own fence goes down to issued and not only to the start of the tail, because the nodes
// that own the numbers in between may lower the row too.
//
// From here until Returned this node tells repairs the end of the tail.
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

// returns notes that from now on the return of a tail that ends at hi may reach the database.
func (f *Fence) returns(tag string, hi int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.returning[tag] = hi
}

// Returned notes that the return of a tail has ended: it cannot reach the database any more.
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
