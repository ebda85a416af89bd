package segment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
	"github.com/leaf-idgen/leaf/segment/fence"
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

	mu       sync.Mutex
	bound    bool
	foreign  error         // why nothing is loaded from the store: it belongs to another rule or cluster
	disowned chan struct{} // closed when foreign is set, and made anew
	synced   bool          // all rows were read at least once
	last     error         // why the last sync failed, nil if it did not
	starving error         // why the queue takes the store for down, nil if it does not
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
		watcher: newWatcher(a, s.Store), look: make(chan struct{}), disowned: make(chan struct{}), gone: map[string]bool{},
	}
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
		if s.foreign != nil { // the name perhaps leads back soon
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
// leaf.ErrNotReady if it is not (yet). Management commands ask before they write.
func (a *Allocator) Bound(tag string) error {
	route := a.router.Route(tag)
	if route < 0 {
		return unknownTag(tag)
	}
	return a.shards[route].admits()
}

func (s *shard) isSynced() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.synced
}

// sync binds the database if it is not bound yet, reads all rows and applies them
// to the table. The first time it also asks for the ranges of recent tags.
func (s *shard) sync() error {
	var held map[string]fence.Mark // from before the reading: what this node takes meanwhile is not in it
	if !s.alloc.fence.HasCluster() {
		held = s.alloc.fence.All()
	}
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
	s.alloc.apply(s, rows)
	s.checkBehind(rows, held)
	if first {
		s.alloc.preload(s)
	}
	return nil
}

// checkBehind wants a load of each tag whose row lies below what this node holds: if the
// database has lost commits, the load is refused, and all nodes stop the tag. Without that a
// node with a large stock sees the loss when it needs its next range, long after the database
// has handed its numbers to others. The reading alone proves nothing (rule M): behind a proxy
// a replica may have answered. A cluster fence refuses such numbers on every node, and held is nil.
func (s *shard) checkBehind(rows []Row, held map[string]fence.Mark) {
	for _, row := range rows {
		m, holds := held[row.Tag]
		if row.Problem != nil || !holds || m.Latched || row.MaxID >= m.High {
			continue
		}
		if t := s.alloc.tag(row.Tag); t != nil && t.shard == s {
			t.askAhead()
		}
	}
}

// reportLoads takes the queue's word on whether, and why, loads find the store unusable.
// Loads tell, not reads: a database that may be read but not written serves nothing.
func (s *shard) reportLoads(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.starving = why
	s.alarmLocked()
}

// block notes whether, and why, the node itself allows no load.
func (s *shard) block(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blocked = why
}

// askAnother finds out whether it is the store or the tag that makes the loads of one
// tag fail, or be late: it loads a range of another tag. While one has stock the node can serve, and
// no load is wasted. Without another tag it is the store.
func (s *shard) askAnother(failed *Tag, why error) {
	var other *Tag
	for _, t := range *s.alloc.table.Load() {
		if t.shard != s || t == failed {
			continue
		}
		t.mu.Lock()
		stock := t.stockLocked()
		late := t.buf != nil && t.buf.late()
		t.mu.Unlock()
		if stock > 0 {
			return
		}
		if !late && (other == nil || t.name < other.name) && !s.alloc.fence.Mark(t.name).Latched {
			other = t
		}
	}
	if other == nil {
		s.queue.condemn(failed, why)
		return
	}
	s.queue.probes(other)
	other.mu.Lock()
	defer other.mu.Unlock()
	if other.state == listed {
		other.ask(other.buffer(), true)
	}
}

// alarmLocked brings the alarm in line with what is known. s.mu is held, so that
// its beginning and end are told in the order in which they happened.
func (s *shard) alarmLocked() {
	a := s.alloc
	switch {
	case a.isClosing():
		return
	case s.foreign != nil:
		a.alarms.Raise(ruleAlarm(s.name, s.foreign))
	default:
		a.alarms.Clear(leaf.AlarmRule, s.name)
	}
	switch {
	case s.foreign != nil:
		a.alarms.Clear(leaf.AlarmStore, s.name)
	case s.last != nil && s.bound && s.starving == nil:
		a.alarms.Raise(listAlarm(s.name, s.last))
	case s.last != nil:
		a.alarms.Raise(storeAlarm(s.name, s.last))
	case s.starving != nil:
		a.alarms.Raise(loadsAlarm(s.name, s.starving))
	default:
		a.alarms.Clear(leaf.AlarmStore, s.name)
	}
}

func (s *shard) read() ([]Row, error) {
	a := s.alloc
	if err := s.bind(); err != nil {
		return nil, err
	}
	s.epoch.Add(1)
	rows, err := bounded.Do(a.running, &s.calls, 10*a.cfg.LoadTimeout, s.store.Rows)
	if err != nil {
		return nil, fmt.Errorf("read all tags: %w", err)
	}
	return rows, nil
}

// lookup asks the store for one row.
func (s *shard) lookup(parent context.Context, tag string) (Row, error) {
	row, err := bounded.Do(parent, &s.calls, s.alloc.cfg.LoadTimeout, func(ctx context.Context) (Row, error) {
		return s.store.Lookup(ctx, tag)
	})
	if err == nil && row.Tag != tag {
		err = unknownTag(tag) // a driver that forgot rule K must not alias two tags
	}
	if err != nil {
		return Row{}, fmt.Errorf("look up tag %q: %w", tag, err)
	}
	return row, nil
}

// apply brings the shard's part of the table in line with rows. A tag that was
// listed after the reading began keeps its place: the rows may be older than it.
func (a *Allocator) apply(s *shard, rows []Row) {
	epoch := s.epoch.Load()
	var add, drop []*Tag
	skipped, listedNow := 0, 0
	a.mu.Lock()
	current := *a.table.Load()
	for _, row := range rows {
		if leaf.ValidateTag(row.Tag) != nil || a.router.Route(row.Tag) != s.index {
			skipped++
			continue
		}
		t := current[row.Tag]
		if t == nil {
			if t = a.pending[row.Tag]; t == nil {
				t = a.newTag(s, row.Tag, listed)
			}
			delete(a.pending, row.Tag)
			add = append(add, t)
		}
		listedNow++
		t.mu.Lock()
		t.state = listed
		if t.epoch < epoch { // else it was told later than these rows were read
			t.describe(row)
		}
		t.mu.Unlock()
		delete(a.misses, row.Tag)
	}
	known := 0
	for _, t := range current {
		if t.shard != s {
			continue
		}
		if known++; t.missed(epoch) {
			drop = append(drop, t)
		}
	}
	drop = s.mayGo(drop, known, listedNow)
	slices.SortFunc(drop, func(x, y *Tag) int { return strings.Compare(x.name, y.name) })
	if len(add)+len(drop) > 0 {
		a.table.Store(current.with(add, drop))
	}
	for _, t := range drop {
		t.detach()
	}
	a.mu.Unlock()
	s.noteGone(epoch)

	if skipped > 0 {
		a.log.Warn("rows are ignored: their tag is not valid, or the tag rule sends it to another database", "store", s.name, "rows", skipped)
	}
}

// missed reports whether the sync number epoch of the tag's store did not see its row.
func (t *Tag) missed(epoch uint64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.epoch < epoch
}

// Refresh reads one tag's row now, so that a change by a management command counts
// at once on this node. A deleted row makes the tag unknown. Errors: as of
// Store.Lookup, but an unknown tag is none; leaf.ErrNotReady if the store does not
// answer.
func (a *Allocator) Refresh(ctx context.Context, name string) error {
	route := a.router.Route(name)
	if route < 0 {
		return unknownTag(name)
	}
	s := a.shards[route]
	if err := s.admits(); err != nil {
		return err
	}
	before, news := a.tag(name), uint64(0)
	if before != nil {
		news = before.newsCount()
	}
	row, err := s.lookup(ctx, name)
	switch {
	case errors.Is(err, leaf.ErrUnknownTag):
		// If the row was seen while we asked, our answer may be the older one.
		if before != nil && before.newsCount() == news {
			a.unlist(before)
		}
		return nil
	case err != nil:
		return storeError(err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.misses, name)
	t := a.tag(name)
	if t == nil {
		if t = a.pending[name]; t == nil {
			t = a.newTag(s, name, listed)
		}
		delete(a.pending, name)
		a.table.Store(a.table.Load().with([]*Tag{t}, nil))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state = listed
	t.describe(row)
	t.tryAgainLocked()
	return nil
}

func (t *Tag) newsCount() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.news
}

// tryAgainLocked forgets the back-off of a failed load and wakes the callers that wait for its
// end. t.mu is held.
func (t *Tag) tryAgainLocked() {
	if t.buf != nil {
		t.buf.retryAt, t.buf.failed = time.Time{}, nil
		if t.buf.exhausted {
			t.shard.retry.add(t)
		}
		t.buf.wakeAll()
	}
}
