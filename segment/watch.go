package segment

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leaf-idgen/leaf/internal/bounded"
)

const (
	// watchPause is the time between two looks at the board. A regress that one node
	// finds stops the tag on the others after that.
	watchPause = time.Second

	// missingPause is watchPause where the tables of the board are missing. listenFor is how
	// long a repair that finds no other node waits for one: the tables may be new, and the
	// nodes enter them within missingPause.
	missingPause = 3 * time.Second
	listenFor    = 4 * time.Second

	// enterPause is the time between two entries of the node on the board. An entry lasts for
	// BoardAge.
	enterPause = time.Minute

	// BoardAge is how long a node that did not end cleanly is asked by repairs.
	BoardAge = 24 * time.Hour
)

// watcher is this node's look at the board of one database. One goroutine at a time uses
// what is below: the first sync, then watch, then leave.
type watcher struct {
	board Board // nil: the database has none

	entered  time.Time
	as       Member           // what was noted of this node last
	entries  int              // how often that was
	left     bool             // the node is off the list for good
	answered map[string]int64 // the questions that were answered last, by tag
	told     map[string]told  // what was told of tags whose rows are gone
	proved   time.Time        // when the board had what it was told last, see prove
	missing  bool             // the tables are missing: it was logged
	failed   string           // why the last look failed, as logged
	odd      string           // the notices that are not heeded, as logged
	behind   bool             // the last look had no time for all that it was to post
	saving   *saving          // what was heeded, on its way to the disk; nil if none is
}

func newWatcher(s Store) watcher {
	w := watcher{answered: map[string]int64{}, told: map[string]told{}}
	w.board, _ = s.(Board)
	return w
}

// watch looks at the board for as long as the node may issue something.
func (s *shard) watch() {
	a := s.alloc
	for a.watching.Err() == nil {
		s.mu.Lock()
		look := s.look // from before the reading, so that no call of lookNow is missed
		s.mu.Unlock()
		s.failed(s.readBoard(a.watching, true))
		if s.watcher.behind {
			continue
		}
		pause := a.rt.Jitter(2 * watchPause)
		if s.watcher.missing {
			pause = missingPause
		}
		_ = a.rt.Wait(a.watching, look, pause)
	}
}

// lookNow makes watch look at the board at once, because this node has something to post.
func (s *shard) lookNow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.look)
	s.look = make(chan struct{})
}

// failed logs why a look failed, once per cause.
func (s *shard) failed(err error) {
	text := ""
	if err != nil {
		text = firstLine(err)
	}
	if text != "" && text != s.watcher.failed {
		s.alloc.log.Warn("the notices of other nodes cannot be read or answered: this node may not hear of a regress, and a repair waits for it in vain", "store", s.name, "error", err)
	}
	s.watcher.failed = text
}

// readBoard reads the board, heeds it, and, if it is to answer, tells the others what
// they must know. A board without tables, or one that the database does not let the node
// use, is no error: the node serves, but hears of no regress.
func (s *shard) readBoard(ctx context.Context, answer bool) error {
	err := s.exchange(ctx, answer)
	switch {
	case errors.Is(err, ErrSchema), errors.Is(err, ErrDenied):
		if !s.watcher.missing {
			s.watcher.missing = true
			s.alloc.log.Warn("this node cannot tell the others that the database lost commits, or hear of it, and a repair cannot ask it; "+
				"do what the error says, or run: leaf schema apply", "store", s.name, "error", err)
		}
		return nil
	case otherCluster(err):
		s.disown(err)
	case err == nil:
		s.watcher.missing = false
	}
	return err
}

// exchange reads the board, heeds it, and posts what other nodes must know. While the disk hangs,
// later notices are still heeded and regresses are still posted: only answers wait until what was
// heeded is on the disk.
func (s *shard) exchange(ctx context.Context, answer bool) error {
	a, w := s.alloc, &s.watcher
	w.behind = false // also where nothing is read: watch looks again at once while it is set
	if w.board == nil || s.isOtherClusters() {
		return nil
	}
	entered := s.enter(ctx, enterPause)
	began := a.fence.Look()
	notices, err := bounded.Do(ctx, &s.calls, a.cfg.LoadTimeout, w.board.Notices)
	if err != nil {
		clear(w.told)
		return errors.Join(entered, err)
	}
	posted := map[string]int64{} // regresses that are on the board
	var open []Notice            // questions
	for _, n := range s.usable(notices) {
		posted[n.Tag] = n.Regress
		if _, ok := a.heedInMemory(n, began); !ok {
			return errors.Join(entered, errLateLook)
		}
		if n.Asked != w.answered[n.Tag] {
			open = append(open, n)
		}
	}
	s.heedNothing(posted, began)
	if answer {
		err = s.tell(ctx, posted)
	}
	if unsaved := s.saved(ctx); unsaved != nil || !answer {
		return errors.Join(entered, err, unsaved)
	}
	return errors.Join(entered, err, s.answer(ctx, open), s.tellGone(ctx))
}

// errLateLook: a repair on this node has overtaken a look at the board.
var errLateLook = errors.New("segment: this node repaired a tag meanwhile")

// usable returns the notices of the shard's tags, without those that no node wrote.
func (s *shard) usable(notices []Notice) (good []Notice) {
	var odd []string
	for _, n := range notices {
		switch {
		case n.Check() != nil:
			odd = append(odd, n.Check().Error())
		case s.alloc.router.Route(n.Tag) == s.index:
			good = append(good, n)
		}
	}
	slices.Sort(odd)
	if text := strings.Join(odd, "; "); text != s.watcher.odd {
		s.watcher.odd = text
		if text != "" {
			s.alloc.log.Warn("rows of leaf_repair are ignored: no node wrote them", "store", s.name, "rows", text)
		}
	}
	return good
}

// saving is one wait for the fence file.
type saving struct {
	done chan struct{}
	err  error // read only after done is closed
}

// saved waits until what was heeded is on the disk, but not for a disk that hangs.
func (s *shard) saved(ctx context.Context) error {
	a, w := s.alloc, &s.watcher
	for {
		last := w.saving
		if last == nil {
			now := &saving{done: make(chan struct{})}
			a.rt.Go(func() { now.err = a.fence.Settle(); close(now.done) })
			w.saving = now
		}
		limited, cancel := a.rt.WithTimeout(ctx, a.cfg.LoadTimeout)
		err := a.rt.Wait(limited, w.saving.done, 0)
		cancel()
		if err != nil {
			return fmt.Errorf("the disk does not answer: what this node heard is not written to file \"fence\": %w", err)
		}
		err, w.saving = w.saving.err, nil
		if last == nil {
			return err
		}
	}
}

// tell posts the tags that are latched on this node and of which the others do not know,
// but for those of which only this node lost its memory. Where all nodes are under one
// cluster fence they need not know: it refuses what this node refused. What takes too long is left to the
// next look, which comes at once unless one failed.
func (s *shard) tell(ctx context.Context, posted map[string]int64) error {
	a := s.alloc
	if a.fence.Latched() == 0 {
		return nil
	}
	var untold []Notice
	marks := a.fence.All()
	for _, tag := range slices.Sorted(maps.Keys(marks)) {
		m := marks[tag]
		if m.Latched && !m.Rebuilt && posted[tag] < m.High && a.router.Route(tag) == s.index {
			untold = append(untold, Notice{Tag: tag, Regress: m.High})
		}
	}
	if len(untold) == 0 {
		return nil
	}
	if alike, err := s.underOneFence(ctx); alike || err != nil {
		return err
	}
	for _, n := range untold {
		a.dropBelow(n.Tag, n.Regress)
	}
	left, err := s.postMany(len(untold), watchPause, func(i int) error {
		return s.post(ctx, func(ctx context.Context) error { return s.watcher.board.Post(ctx, untold[i]) })
	}, func(int, error) {})
	s.watcher.behind = s.watcher.behind || left && err == nil
	return err
}

// underOneFence reports whether all nodes on the list take their ranges under the cluster
// fence of this one.
func (s *shard) underOneFence(ctx context.Context) (bool, error) {
	a := s.alloc
	own := a.fence.Number()
	if own == 0 {
		return false, nil
	}
	nodes, err := bounded.Do(ctx, &s.calls, a.cfg.LoadTimeout, s.watcher.board.Nodes)
	other := slices.ContainsFunc(nodes, func(m Member) bool { return m.Fence != own })
	return err == nil && !other, err
}

// post is a call of the board that returns nothing.
func (s *shard) post(parent context.Context, f func(context.Context) error) error {
	_, err := bounded.Do(parent, &s.calls, s.alloc.cfg.LoadTimeout, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, f(ctx)
	})
	return err
}

// endWatches ends the looks at the boards. It returns false if one goes on beyond ctx.
func (a *Allocator) endWatches(ctx context.Context) bool {
	a.unwatch()
	return a.watches.Wait(ctx) == nil
}

// leaveBoards takes the node off the lists of those that a repair asks, also where it entered a
// list and loads nothing: its first look at the board failed, or the database got another rule.
func (a *Allocator) leaveBoards(ctx context.Context) {
	boards := bounded.NewGroup(a.rt)
	for _, s := range a.shards {
		if s.process.Load() == 0 || s.isOtherClusters() { // it never entered, or is not on that list
			continue
		}
		boards.Start(func() { s.leave(ctx) })
	}
	_ = boards.Wait(ctx) // what takes longer only makes a repair ask for this node
}

// leave takes the node off the list, and then answers what was asked until then: a repair
// that found the node on the list waits for its word.
func (s *shard) leave(ctx context.Context) {
	a, w := s.alloc, &s.watcher
	err := s.post(ctx, func(ctx context.Context) error { return w.board.Leave(ctx, s.boardName()) })
	w.left = true
	err = errors.Join(err, s.exchange(ctx, true), s.tellReturns(ctx))
	if err != nil && !errors.Is(err, ErrSchema) && !errors.Is(err, ErrDenied) {
		a.log.Info("this node could not leave the board at its stop; a repair may wait in vain for its answer", "store", s.name, "error", err)
	}
}
