package segment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// Close ends the Allocator: no new loads, the loads under way end, the unused
// tails go back to the stores, the list of recent tags is written. IDs in stock
// are served until the moment their tail goes back; calls that wait then get
// leaf.ErrNotReady. ctx bounds the whole, half of it the wait for loads; what is not
// returned by then is lost, never repeated. A second Close waits for the first.
//
// After an error the data directory must stay locked until the process ends: a
// disk that hangs may still carry out a write.
func (a *Allocator) Close(ctx context.Context) error {
	if !a.begins() {
		return a.rt.Wait(ctx, a.closed, 0)
	}
	defer close(a.closed)
	defer a.cancel()
	a.fence.Stop()
	for _, s := range a.shards {
		for _, t := range s.queue.close() {
			t.loadEnded(func(*buffer) {})
		}
	}
	err := a.waitForLoads(ctx)
	err = errors.Join(err, bounded.Within(ctx, a.rt, "write the list of recent tags", func() error {
		a.remember()
		return nil
	}))
	a.retired.Store(true)
	tails := a.retireAll()
	if !a.cfg.KeepUnused {
		a.returnAll(ctx, tails)
	}
	for _, t := range tails {
		if !t.returned.Load() {
			a.counters.lost[lossStop].Add(t.unused.Len())
		}
	}
	if a.endWatches(ctx) { // only now: a repair asks this node while a statement hangs
		a.leaveBoards(ctx)
	}
	return errors.Join(err, a.fence.Close(ctx))
}

// begins reports whether this is the first Close. It ends the syncs with the databases.
func (a *Allocator) begins() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	first := !a.isClosing()
	a.stop()
	return first
}

// waitForLoads gives the loads half of the time that ctx leaves, so that one that
// hangs does not cost all other tags their tails.
func (a *Allocator) waitForLoads(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = a.rt.WithTimeout(ctx, deadline.Sub(a.rt.Now())/2)
		defer cancel()
	}
	if err := a.tasks.Wait(ctx); err != nil {
		return fmt.Errorf("segment: loads did not end in time, their ranges are lost: %w", err)
	}
	return nil
}

// tail is what is left of a tag's last range.
type tail struct {
	tag      *Tag
	issued   int64      // end of the numbers this node issued
	unused   leaf.Range // not issued
	wrote    fence.Held // entry of the cluster fence for the end of unused
	returned atomic.Bool
}

// retireAll ends the ranges of all tags, and returns the tails that may be returned to the stores.
func (a *Allocator) retireAll() []*tail {
	var tails []*tail
	for _, t := range *a.table.Load() {
		issued, unused, wrote := t.retire()
		if a.fence.HasCluster() && !a.cfg.KeepUnused && issued < unused.Lo {
			// The row stood at the tail's start, as the end of another node's range, and the
			// return of that range may still be on its way: it must not find the row there
			// again, and lower it below the cluster fence. So the first ID is not returned.
			unused.Lo++
			a.counters.lost[lossStop].Add(1)
		}
		if unused.Len() > 0 {
			tails = append(tails, &tail{tag: t, issued: issued, unused: unused, wrote: wrote})
		}
	}
	slices.SortFunc(tails, func(x, y *tail) int { return strings.Compare(x.tag.name, y.tag.name) })
	return tails
}

// returnAll returns the tails, several at a time: the writes of the fence
// file then share their syncs.
func (a *Allocator) returnAll(ctx context.Context, tails []*tail) {
	if len(tails) == 0 {
		return
	}
	var next, numbers atomic.Int64
	workers := bounded.NewGroup(a.rt)
	for range min(a.cfg.MaxLoads, len(tails)) {
		workers.Start(func() {
			for i := next.Add(1); i <= int64(len(tails)) && ctx.Err() == nil; i = next.Add(1) {
				t := tails[i-1]
				if err := a.returnUnused(ctx, t); err != nil {
					a.log.Info("unused numbers are not returned", "tag", t.tag.name, "lo", t.unused.Lo, "hi", t.unused.Hi, "reason", err)
					continue
				}
				t.returned.Store(true)
				numbers.Add(t.unused.Len())
			}
		})
	}
	if err := workers.Wait(ctx); err != nil {
		a.log.Warn("the stop ended before all unused numbers were returned; the rest is lost", "error", err)
	}
	a.counters.returned.Add(numbers.Load())
	a.log.Info("unused numbers returned", "tags", len(tails), "numbers", numbers.Load())
}

// returnUnused returns a tail; the first failure ends it, and the numbers are lost. The fences go
// down before the row (Fence.Lower). The compare-and-set is sent once, whatever becomes of
// it. It may run on after Close has given up waiting, so it changes nothing in the tail.
func (a *Allocator) returnUnused(ctx context.Context, t *tail) error {
	name := t.tag.name
	if err := a.fence.Lower(ctx, name, t.issued, t.unused, t.wrote); err != nil {
		return err
	}
	s := t.tag.shard
	_, err := bounded.Do(ctx, &s.calls, a.cfg.LoadTimeout, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.store.ReturnUnused(ctx, name, t.unused.Hi, t.unused.Lo)
	})
	if err == nil || errors.Is(err, leaf.ErrConflict) || errors.Is(err, leaf.ErrUnknownTag) || otherCluster(err) {
		a.fence.Returned(name)
	}
	return err
}
