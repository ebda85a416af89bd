package segment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/leaf-idgen/leaf"
)

// Close ends the Allocator: no new loads, the loads under way end, the unused
// tails go back to the stores, the list of recent tags is written. IDs in stock
// are served until the moment their tail goes back; calls that wait then get
// leaf.ErrNotReady. ctx bounds the whole; what is not given back by then is lost,
// never repeated. A second Close waits for the first.
func (a *Allocator) Close(ctx context.Context) error {
	if a.closer.Swap(true) {
		return a.rt.Wait(ctx, a.closed, 0)
	}
	defer close(a.closed)
	close(a.closing)
	for _, s := range a.shards {
		for _, t := range s.queue.close() {
			t.loadEnded(func(*buffer) {})
		}
	}
	err := a.tasks.wait(ctx)
	a.remember()
	a.retired.Store(true)
	tails := a.retireAll()
	if err == nil && !a.cfg.NoGiveBack {
		a.giveBackAll(ctx, tails)
	}
	for _, t := range tails {
		a.counters.lost.Add(t.unused.Len())
	}
	a.cancel()
	if err != nil {
		// Loads still run and may write the fence file; it closes with the process.
		return fmt.Errorf("segment: loads did not end in time, unused numbers are lost: %w", err)
	}
	return a.fence.close()
}

// tail is what is left of a tag's last range.
type tail struct {
	tag    *Tag
	issued int64      // end of the numbers this node issued
	unused leaf.Range // not issued; emptied once it was given back
}

func (a *Allocator) retireAll() []*tail {
	var tails []*tail
	for _, t := range *a.table.Load() {
		if issued, unused := t.retire(); unused.Len() > 0 {
			tails = append(tails, &tail{t, issued, unused})
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
	var next, returned atomic.Int64
	workers := group{rt: a.rt}
	for range min(a.cfg.MaxLoads, len(tails)) {
		workers.start(func() {
			for i := next.Add(1); i <= int64(len(tails)) && ctx.Err() == nil; i = next.Add(1) {
				t := tails[i-1]
				if err := a.giveBack(t); err != nil {
					a.log.Info("unused numbers are not given back", "tag", t.tag.name, "lo", t.unused.Lo, "hi", t.unused.Hi, "reason", err)
					continue
				}
				returned.Add(t.unused.Len())
				t.unused = leaf.Range{}
			}
		})
	}
	// Every call inside has its own deadline, so this wait ends.
	_ = workers.wait(context.Background())
	a.counters.givenBack.Add(returned.Load())
	a.log.Info("unused numbers given back", "tags", len(tails), "numbers", returned.Load())
}

// giveBack returns a tail in the order of rule G; the first failure ends it, and
// the numbers are lost. A cluster-wide fence is lowered first of all, by
// compare-and-set from the range's end. The own fence goes down to the end of what
// was issued before the row does, so that a crash in between leaves the row above
// the fence: no number is issued twice, and no false alarm is raised. It goes no
// less far down, because the nodes that own the numbers in between may lower the
// row too. The compare-and-set is sent once, whatever becomes of it.
func (a *Allocator) giveBack(t *tail) error {
	name := t.tag.name
	mark := a.fence.mark(name)
	if mark.Latched {
		return errors.New("the tag is latched")
	}
	if err := a.fence.set(name, Mark{High: t.issued}); err != nil {
		return err
	}
	s := t.tag.shard
	_, err := call(s, a.cfg.LoadTimeout, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.store.GiveBack(ctx, name, t.unused.Hi, t.unused.Lo)
	})
	return err
}
