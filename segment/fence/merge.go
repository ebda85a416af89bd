package fence

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/leaf-idgen/leaf/internal/bounded"
)

// merge raises the entry of each tag to this node's mark, so that other nodes respect the
// mark. It returns the number of tags with a mark. Loads wait until the merge has ended.
//
// An entry that is high enough is written anew if the tag may have a range that was taken without
// the fence: those of this process are noted, those of the one before it can be of any tag, also of
// one whose mark was lost (Mark.Read). Such a range can lie inside the unused tail of another node's
// range, when the database lost commits meanwhile. The return of that tail lowers the entry only
// from the version that the other node wrote, so it fails from now on.
func (c *cluster) merge(space string) (int, error) {
	cfg := &c.fence.cfg
	c.mu.Lock()
	outage := c.outage
	c.outage = nil
	c.merges++
	all := !c.served || c.losses > 0 // what a merge before wrote anew may be lost
	c.turnLocked(merging)
	c.mu.Unlock()
	if outage != nil {
		if err := outage.Wait(c.fence.running); err != nil {
			return 0, err
		}
	}
	c.mu.Lock()
	apart := maps.Clone(c.apart) // complete: no load is degraded any more
	c.mu.Unlock()
	marks := c.fence.All()
	var tags []string
	for tag, m := range marks {
		if m.ranges() > 0 || all {
			tags = append(tags, tag)
		}
	}
	slices.Sort(tags)
	var next atomic.Int64
	errs := make([]error, min(cfg.MaxCalls, len(tags)))
	workers := bounded.NewGroup(cfg.Runtime)
	for w := range errs {
		workers.Start(func() {
			for i := next.Add(1); i <= int64(len(tags)) && errs[w] == nil && c.fence.running.Err() == nil; i = next.Add(1) {
				tag := tags[i-1]
				errs[w] = c.raiseTo(c.fence.running, space, tag, marks[tag].ranges(), all || apart[tag])
			}
		})
	}
	// This wait needs no deadline: each call has one, and no call may outlive the merge.
	_ = workers.Wait(context.Background())
	return len(tags), errors.Join(errors.Join(errs...), c.fence.running.Err())
}

// raiseTo raises the tag's entry to end, or creates it unless end is 0. It does not lower an entry.
// With anew it writes also an entry that is high enough, so that its version is new.
func (c *cluster) raiseTo(parent context.Context, space, tag string, end int64, anew bool) error {
	for range MaxLost {
		e, ok, err := c.read(parent, space, tag)
		if err != nil {
			return err
		}
		if e.End >= end && (!ok || !anew) {
			return nil
		}
		var old *Entry
		if ok {
			old = &e
		}
		if _, err = c.swap(parent, space, tag, old, max(end, e.End)); !errors.Is(err, ErrMoved) {
			return err
		}
	}
	return fmt.Errorf("raise the cluster fence of tag %q to %d: %w %d times in a row", tag, end, ErrMoved, MaxLost)
}

// probeEntry is the entry that probe writes. A tag of this name would work all the same.
const probeEntry = "\x01leaf-probe"

// probe checks with a Swap that the store accepts writes. A store can answer reads and refuse
// writes, as etcd does when its quota is used up. Without the probe each load would waste a
// range to find that out.
func (c *cluster) probe(space string) error {
	e, ok, err := c.read(c.fence.running, space, probeEntry)
	if err != nil {
		return err
	}
	var old *Entry
	if ok {
		old = &e
	}
	_, err = c.swap(c.fence.running, space, probeEntry, old, e.End)
	if errors.Is(err, ErrMoved) {
		return nil // another node has just written the entry
	}
	return err
}

// MaxLost is how many races against other nodes a load loses in a row before it fails.
const MaxLost = 16
