package segment

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
)

// shard is one database of the Allocator: its tags, its queue of loads, and the
// goroutine that follows its rows. Shards share nothing but the table.
type shard struct {
	alloc *Allocator
	index int
	name  string
	store Store
	queue queue

	calls   bounded.Guard
	watcher watcher
	process atomic.Int64 // Member.Process of this one, 0 before the first entry
	copies  atomic.Int64 // processes with this node's identity that entered later

	epoch    atomic.Uint64 // number of the sync under way or last done
	vanished bool          // the alarm of that name is raised; guarded by Allocator.mu

	contacted  chan struct{} // closed when the first sync has ended
	identified chan struct{} // closed by identify
	identify   func()        // notes that the database was bound, or is another's

	mu       sync.Mutex
	bound    bool
	foreign  error         // why nothing is loaded from the store: it belongs to another rule or cluster
	disowned chan struct{} // closed when foreign is set, and replaced by a new one
	synced   bool          // all rows were read at least once
	last     error         // why the last sync failed, nil if it did not
	starving error         // why the queue considers the store down, nil if it does not
	blocked  error         // why the node itself could load no range last: its disk, or the cluster fence; nil if it could. It counts while a load is tried again

	gone map[string]bool // tags that this node took ranges of, and whose rows are gone

	retry retries

	look chan struct{} // closed when watch must look at the board at once
}

// longestSyncBackoff is for a store that was read once: its tags serve, and news
// of rows can wait.
const longestSyncBackoff = 5 * time.Second

func newShard(a *Allocator, index int, s NamedStore) *shard {
	shard := &shard{
		alloc: a, index: index, name: s.Name, store: s.Store,
		calls:   bounded.Guard{Runtime: a.rt, What: fmt.Sprintf("store %q", s.Name), Limit: a.cfg.MaxLoads, Total: &a.counters.abandoned},
		watcher: newWatcher(s.Store), look: make(chan struct{}), contacted: make(chan struct{}), identified: make(chan struct{}), disowned: make(chan struct{}), gone: map[string]bool{},
	}
	shard.identify = sync.OnceFunc(func() { close(shard.identified) })
	shard.queue = queue{
		rt: a.rt, tasks: a.tasks, max: a.cfg.MaxLoads, quit: a.running.Done(), report: shard.reportLoads, alone: shard.askAnother,
		slow: line{inOrder: true},
	}
	shard.retry = retries{shard: shard, tags: map[*Tag]struct{}{}}
	return shard
}

// follow syncs until shutdown.
func (s *shard) follow(fresh bool) {
	a := s.alloc
	failures := 0
	if !fresh {
		failures = 1
	}
	for {
		pause := a.cfg.SyncInterval
		if failures > 0 {
			pause = bounded.Backoff(a.rt, failures)
			if s.isSynced() && failures > 6 {
				pause = min(longestSyncBackoff, a.cfg.SyncInterval)
			}
		}
		s.mu.Lock()
		disowned := s.disowned
		if s.foreign != nil { // the name may soon lead to the right database again
			pause, disowned = min(pause, longestSyncBackoff), nil
		}
		s.mu.Unlock()
		_ = a.rt.Wait(a.running, disowned, pause)
		if a.isClosing() {
			return
		}
		select {
		case <-disowned:
			continue // the pause is shorter now
		default:
		}
		if s.sync() != nil {
			failures++
		} else {
			failures = 0
		}
	}
}

// admits returns leaf.ErrNotReady unless the database is bound: no statement may
// reach one that could belong to another division of tags.
func (s *shard) admits() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.foreign != nil:
		return s.foreignLocked()
	case !s.bound:
		return fmt.Errorf("%w: store %q has not answered yet", leaf.ErrNotReady, s.name)
	}
	return nil
}

// Bound returns nil if the tag's database is bound to this node's division of tags,
// leaf.ErrNotReady if it is not (yet). It waits for the first contact with the database, until ctx
// ends or as long as a load may take, and as long again for one that succeeds: the first may fail because
// the machine is busy with the start. Management commands ask before they write.
func (a *Allocator) Bound(ctx context.Context, tag string) error {
	route := a.router.Route(tag)
	if route < 0 {
		return unknownTag(tag)
	}
	s := a.shards[route]
	for _, event := range []chan struct{}{s.contacted, s.identified} {
		if err := a.rt.Wait(ctx, event, a.cfg.LoadTimeout); err != nil {
			return fmt.Errorf("first contact with store %q: %w", s.name, err)
		}
	}
	return s.admits()
}

func (s *shard) isSynced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced
}

// sync binds the database if it is not bound yet, reads all rows and applies them
// to the table. The first time it also asks for the ranges of recent tags.
func (s *shard) sync() error {
	ends := s.alloc.knownEnds() // from before the reading: what is taken meanwhile is not in it
	rows, err := s.read()
	s.mu.Lock()
	before := s.last
	first := err == nil && !s.synced
	s.synced = s.synced || err == nil
	s.last = err
	s.alarmLocked()
	s.mu.Unlock()

	log := s.alloc.log.With("store", s.name)
	if err != nil {
		if before == nil || before.Error() != err.Error() {
			log.Warn("reading the tags failed; trying again", "error", err)
		}
		return err
	}
	if before != nil {
		log.Info("store answers again", "tags", len(rows))
	}
	s.alloc.apply(s, rows, s.deletedByCommand(rows))
	s.checkBehind(rows, ends)
	if !s.retry.waiting() {
		s.queue.rest()
	}
	if first {
		s.alloc.preload(s)
	}
	return nil
}

// checkBehind wants a load of each tag whose row lies below what this node knows of it: if the
// database has lost commits, the load is refused, and all nodes stop the tag. Without that a
// node with a large stock sees the loss when it needs its next range, long after the database
// has handed its numbers to others, and one that does not issue the tag, because it is in strict
// order, does not see it. The reading alone proves nothing (rule M): behind a proxy a replica may
// have answered. A cluster fence that answers refuses such numbers on every node, and ends is nil.
func (s *shard) checkBehind(rows []Row, ends map[string]int64) {
	for _, row := range rows {
		if end := ends[row.Tag]; row.Problem != nil || end == 0 || row.MaxID >= end {
			continue
		}
		if t := s.alloc.tag(row.Tag); t != nil && t.shard == s {
			t.checkBehind(row.MaxID)
		}
	}
}

// knownEnds returns below which number a range of each tag would be a regress, as far as this node
// knows, and nil while a cluster fence covers the ranges of all nodes.
func (a *Allocator) knownEnds() map[string]int64 {
	if a.fence.Covers() {
		return nil
	}
	ends := map[string]int64{}
	for tag, m := range a.fence.All() { // also of tags that are not listed yet, at a start
		ends[tag] = m.High
	}
	for tag, t := range *a.table.Load() {
		t.mu.Lock()
		if end := t.known.end(); end > ends[tag] {
			ends[tag] = end
		}
		t.mu.Unlock()
	}
	return ends
}
