package segment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment/fence"
	"github.com/leaf-idgen/leaf/segment/internal/bounded"
)

// Close ends the Allocator: no new loads, the loads under way end, the unused
// tails go back to the stores, the list of recent tags is written. IDs in stock
// are served until the moment their tail goes back; calls that wait then get
// leaf.ErrNotReady. ctx bounds the whole, half of it the wait for loads; what is not
// given back by then is lost, never repeated. A second Close waits for the first.
//
// After an error the data directory must stay locked until the process ends: a
// disk that hangs may still carry out a write.
func (a *Allocator) Close(ctx context.Context) error {
	if a.closer.Swap(true) {
		return a.rt.Wait(ctx, a.closed, 0)
	}
	defer close(a.closed)
	defer a.cancel()
	close(a.closing)
	a.unread()
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
	if !a.cfg.NoGiveBack {
		a.giveBackAll(ctx, tails)
	}
	for _, t := range tails {
		if !t.returned.Load() {
			a.counters.lost.Add(t.unused.Len())
		}
	}
	if a.endWatches(ctx) { // only now: a repair asks this node while a statement hangs
		a.leaveBoards(ctx)
	}
	return errors.Join(err, a.fence.Close(ctx))
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

func (a *Allocator) retireAll() []*tail {
	var tails []*tail
	for _, t := range *a.table.Load() {
		if issued, unused, wrote := t.retire(); unused.Len() > 0 {
			tails = append(tails, &tail{tag: t, issued: issued, unused: unused, wrote: wrote})
		}
	}
	slices.SortFunc(tails, func(x, y *tail) int { return strings.Compare(x.tag.name, y.tag.name) })
	return tails
}

// giveBackAll gives the tails back, several at a time: the writes of the fence
// file then share their syncs.
func (a *Allocator) giveBackAll(ctx context.Context, tails []*tail) {
	if len(tails) == 0 {
		return
	}
	var next, numbers atomic.Int64
	workers := bounded.NewGroup(a.rt)
	for range min(a.cfg.MaxLoads, len(tails)) {
		workers.Start(func() {
			for i := next.Add(1); i <= int64(len(tails)) && ctx.Err() == nil; i = next.Add(1) {
				t := tails[i-1]
				if err := a.giveBack(ctx, t); err != nil {
					a.log.Info("unused numbers are not given back", "tag", t.tag.name, "lo", t.unused.Lo, "hi", t.unused.Hi, "reason", err)
					continue
				}
				t.returned.Store(true)
				numbers.Add(t.unused.Len())
			}
		})
	}
	if err := workers.Wait(ctx); err != nil {
		a.log.Warn("giving unused numbers back took too long", "error", err)
	}
	a.counters.givenBack.Add(numbers.Load())
	a.log.Info("unused numbers given back", "tags", len(tails), "numbers", numbers.Load())
}

// giveBack returns a tail; the first failure ends it, and the numbers are lost. The fences go
// down before the row (Fence.Lower). The compare-and-set is sent once, whatever becomes of
// it.
func (a *Allocator) giveBack(ctx context.Context, t *tail) error {
	name := t.tag.name
	if err := a.fence.Lower(ctx, name, t.issued, t.unused, t.wrote); err != nil {
		return err
	}
	s := t.tag.shard
	_, err := bounded.Do(ctx, &s.calls, a.cfg.LoadTimeout, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.store.GiveBack(ctx, name, t.unused.Hi, t.unused.Lo)
	})
	if err == nil || errors.Is(err, leaf.ErrConflict) || errors.Is(err, leaf.ErrUnknownTag) || otherCluster(err) {
		a.fence.Returned(name)
	}
	return err
}
