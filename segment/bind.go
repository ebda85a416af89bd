package segment

import (
	"context"
	"errors"
	"fmt"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
)

// AfterBackups ends MoveRows. Nodes know the numbers that were issued since the backup by the names that rows had then. Of a name that
// the rule does not have any more they tell nothing.
const AfterBackups = "if backups from before this rule were loaded, see docs/OPERATIONS.md#backup-and-restore-drill too: a tag in several databases, or one that was, then needs a number"

// MoveRows is what to do where a database has another tag rule, and the configured one is right: accept makes it that of the database.
func MoveRows(accept string) string {
	return "stop all nodes, and Java servers for good, then move the rows to where it expects them (a row that was moved earlier needs at least the max_id that its old row has now), then " + accept + "; " + AfterBackups
}

// refuses returns why nothing may be loaded from the store, nil if it may. When one database has
// another tag rule, no store may be loaded from: the rule concerns the tags of all databases, and a
// database that it leaves out still has the old rule.
func (s *shard) refuses() error {
	for _, other := range s.alloc.shards {
		if err := other.refusal(other == s); err != nil {
			return err
		}
	}
	return nil
}

// Refuses reports whether nothing is loaded from a store, because it is another cluster's, or one of the stores belongs to
// another tag rule. store is its place in Router.Stores.
func (a *Allocator) Refuses(store int) bool { return a.shards[store].refuses() != nil }

// refusal returns why this store forbids loads: from itself (own), or from all stores.
func (s *shard) refusal(own bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if own && s.foreign != nil || errors.Is(s.foreign, ErrRule) {
		return s.foreignLocked()
	}
	return nil
}

func (s *shard) foreignLocked() error {
	return fmt.Errorf("%w: %s", leaf.ErrNotReady, s.ownerLocked())
}

// ownerLocked says to what the store belongs now. It is not this node's store any more.
func (s *shard) ownerLocked() string {
	if otherCluster(s.foreign) {
		return fmt.Sprintf("store %q is the database of another cluster now", s.name)
	}
	return fmt.Sprintf("store %q belongs to another tag rule now", s.name)
}

// isOtherClusters reports whether the store is the database of another cluster: what its
// board says concerns other ranges.
func (s *shard) isOtherClusters() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return otherCluster(s.foreign)
}

func otherCluster(err error) bool {
	_, ok := errors.AsType[*ClusterError](err)
	return ok
}

// disown notes that the database is another cluster's or belongs to another rule. Nothing is
// loaded from it until a bind succeeds. After another rule the node also drops what is in memory:
// what the operator did to the rows is not known. After another cluster's ID it serves memory:
// those ranges are of the own cluster.
func (s *shard) disown(err error) {
	s.mu.Lock()
	s.foreign = err
	close(s.disowned)
	s.disowned = make(chan struct{})
	s.alarmLocked()
	s.mu.Unlock()
	s.identify()
	if errors.Is(err, ErrRule) {
		s.alloc.dropStock()
	}
}

// bind compares the database's binding with ours, before every reading of the rows: the
// tags may be moved elsewhere while this node runs. Each load compares it again.
func (s *shard) bind() error {
	a := s.alloc
	s.mu.Lock()
	first, timeout := !s.bound, a.cfg.LoadTimeout
	s.mu.Unlock()
	if !first {
		timeout *= 10 // the same as for the reading of all rows that follows
	}
	_, err := bounded.Do(a.running, &s.calls, timeout, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.store.Bind(ctx, a.router.Binding(s.index))
	})
	if errors.Is(err, ErrRule) || otherCluster(err) {
		s.disown(err)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.foreign = nil // before the look at the board, which heeds nothing of another cluster
	s.mu.Unlock()
	if first { // before the first range: this node may have been away during a regress
		if err := s.firstLook(); err != nil {
			return fmt.Errorf("read the notices of other nodes: %w", err)
		}
	}
	s.mu.Lock()
	s.bound = true
	s.mu.Unlock()
	s.identify()
	if first {
		s.queue.resume()
		if s.watcher.board != nil {
			a.watches.Start(s.watch)
		}
	}
	return nil
}

// firstLook reads the board for the first time, and enters it. Close waits for it before the node
// leaves, so that no entry comes after that.
func (s *shard) firstLook() error {
	if !s.alloc.watches.Enter() {
		return fmt.Errorf("%w: closed", leaf.ErrNotReady)
	}
	defer s.alloc.watches.End()
	return s.readBoard(s.alloc.running, false)
}

// dropStock takes what is in memory from all tags. Loads that are under way find that their
// store refuses.
func (a *Allocator) dropStock() {
	for _, t := range *a.table.Load() {
		t.mu.Lock()
		if t.state == listed {
			a.counters.lost[lossDatabase].Add(t.dropStockLocked())
			a.dropped(t.name)
		}
		t.mu.Unlock()
	}
}

// dropStockLocked shuts the tag's ranges and returns how many IDs were not issued. t.mu is
// held.
func (t *Tag) dropStockLocked() int64 {
	dropped := t.cur.Load().shut().Len()
	t.cur.Store(t.alloc.drained)
	if b := t.buf; b != nil {
		dropped += b.rest.Len() + b.next.Len() + b.after.Len()
		b.rest, b.next, b.after = leaf.Range{}, leaf.Range{}, leaf.Range{}
		b.wakeAll()
	}
	return dropped
}
