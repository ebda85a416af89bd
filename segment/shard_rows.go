package segment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
	"github.com/leaf-idgen/leaf/segment/fence"
)

func (s *shard) read() ([]Row, error) {
	a := s.alloc
	if err := s.bind(); err != nil {
		return nil, err
	}
	s.epoch.Add(1)
	rows, err := bounded.Do(a.running, &s.calls, 10*a.cfg.LoadTimeout, s.store.Rows)
	if otherCluster(err) { // bind has met the own one: another connection leads elsewhere
		s.disown(err)
	}
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
	if otherCluster(err) {
		s.disown(err)
		err = fence.Blocked(err)
	}
	if err == nil && row.Tag != tag {
		err = unknownTag(tag) // a driver that forgot rule K must not alias two tags
	}
	if err != nil {
		return Row{}, fmt.Errorf("look up tag %q: %w", tag, err)
	}
	return row, nil
}

// apply brings the shard's part of the table in line with rows. A tag that was
// listed after the reading began keeps its place: the rows may be older than it. It keeps its
// options, too, if the reading that showed them began later.
// deleted are those of them that are not in rows because a command has deleted them.
func (a *Allocator) apply(s *shard, rows []Row, deleted map[string]bool) {
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
		if t.asked < epoch {
			t.describe(row, epoch)
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
	drop = s.mayGo(drop, known, listedNow, deleted)
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
	for {
		before, news := a.tag(name), uint64(0)
		if before != nil {
			news = before.newsCount()
		}
		asked := s.epoch.Load()
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
		case a.refreshed(s, row, asked, before, news):
			return nil
		}
	}
}

// refreshed puts a row into the table. It returns false if the row was seen, or seen to be gone, while it was read: it may be
// the older one, and a tag that is in strict order now would be in plain order again.
func (a *Allocator) refreshed(s *shard, row Row, asked uint64, before *Tag, news uint64) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.tag(row.Tag)
	if t != before || t != nil && t.newsCount() != news {
		return false
	}
	delete(a.misses, row.Tag)
	if t == nil {
		if t = a.pending[row.Tag]; t == nil {
			t = a.newTag(s, row.Tag, listed)
		}
		delete(a.pending, row.Tag)
		a.table.Store(a.table.Load().with([]*Tag{t}, nil))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.state = listed
	t.describe(row, asked)
	t.tryAgainLocked()
	return true
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
