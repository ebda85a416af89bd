package fence

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/leaf-idgen/leaf/segment/internal/bounded"
)

// merge raises the entries that lie below this node's marks, so that other nodes respect
// these, and returns how many tags this node has ranges of. Loads wait meanwhile.
func (c *cluster) merge(space string) (int, error) {
	cfg := &c.fence.cfg
	c.mu.Lock()
	outage := c.outage
	c.outage = nil
	c.merges++
	c.turnLocked(merging)
	c.mu.Unlock()
	if outage != nil {
		if err := outage.Wait(c.fence.running); err != nil {
			return 0, err
		}
	}
	marks := c.fence.All()
	var tags []string
	for tag, m := range marks {
		if m.ranges() > 0 {
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
				errs[w] = c.raiseTo(c.fence.running, space, tags[i-1], marks[tags[i-1]].ranges())
			}
		})
	}
	// Not bounded by a context: each of the calls is, and none may outlive the merge.
	_ = workers.Wait(context.Background())
	return len(tags), errors.Join(errors.Join(errs...), c.fence.running.Err())
}

// raiseTo raises the tag's entry to end if it lies below, or makes it.
func (c *cluster) raiseTo(parent context.Context, space, tag string, end int64) error {
	for range MaxLost {
		e, ok, err := c.read(parent, space, tag)
		if err != nil {
			return err
		}
		var old *Entry
		if ok {
			if e.End >= end {
				return nil
			}
			old = &e
		}
		if _, err = c.swap(parent, space, tag, old, end); !errors.Is(err, ErrMoved) {
			return err
		}
	}
	return fmt.Errorf("raise the cluster fence of tag %q to %d: %w %d times in a row", tag, end, ErrMoved, MaxLost)
}

// probeEntry is no tag that anybody uses; a tag of this name would not mind.
const probeEntry = "\x01leaf-probe"

// probe makes a Swap that changes no tag's entry. A store can answer and read and
// yet refuse to write, as etcd does once its quota is used up; without this every
// load would burn a range to find it out.
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
		return nil // the Swap of another node has just succeeded
	}
	return err
}

// MaxLost is how many races against other nodes a load loses in a row before it fails.
const MaxLost = 16
