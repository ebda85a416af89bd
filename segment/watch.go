package segment

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

const (
	// watchPause is the time between two looks at the board. A regress that one node
	// finds stops the tag on the others after that.
	watchPause = time.Second

	// missingPause is the same where the tables are missing, and listenFor how long a
	// repair that finds no other node waits for one: they may have been made just now.
	missingPause = 3 * time.Second
	listenFor    = 4 * time.Second

	// enterPause is the time between two notes that the node is there. They last for
	// BoardAge.
	enterPause = time.Minute

	// BoardAge is how long a node that did not end cleanly is asked by repairs.
	BoardAge = 24 * time.Hour
)

// watcher is this node's look at the board of one database. One goroutine at a time uses
// what is below: the first sync, then watch.
type watcher struct {
	board Board // nil: the database has none, or the node has no identity

	entered  time.Time
	answered map[string]int64 // the questions that were answered last, by tag
	missing  bool             // the tables are missing: it was logged
}

func newWatcher(a *Allocator, s Store) watcher {
	w := watcher{answered: map[string]int64{}}
	if a.cfg.NodeID != "" {
		w.board, _ = s.(Board)
	}
	return w
}

// watch looks at the board until shutdown.
func (s *shard) watch() {
	a := s.alloc
	for !a.isClosing() {
		s.mu.Lock()
		look := s.look // from before the reading, so that no call of lookNow is missed
		s.mu.Unlock()
		if err := s.readBoard(); err != nil {
			a.log.Debug("the notices of other nodes cannot be read or answered", "store", s.name, "error", err)
		}
		pause := a.rt.Jitter(2 * watchPause)
		if s.watcher.missing {
			pause = missingPause
		}
		_ = a.rt.Wait(a.reading, look, pause)
	}
}

// lookNow makes watch look at the board at once: there is something to be told.
func (s *shard) lookNow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.look)
	s.look = make(chan struct{})
}

// readBoard reads the board, heeds it, and tells the others what they must know. A board
// without tables is no error: the node serves, but hears of no regress.
func (s *shard) readBoard() error {
	err := s.exchange()
	if errors.Is(err, ErrSchema) {
		if !s.watcher.missing {
			s.watcher.missing = true
			s.alloc.log.Warn("nodes cannot tell one another that the database lost commits, and a repair cannot ask them; run: leaf schema apply", "store", s.name, "error", err)
		}
		return nil
	}
	if err == nil {
		s.watcher.missing = false
	}
	return err
}

func (s *shard) exchange() error {
	a, w := s.alloc, &s.watcher
	if w.board == nil {
		return nil
	}
	if now := a.rt.Now(); w.entered.IsZero() || now.Sub(w.entered) >= enterPause || now.Before(w.entered) {
		if err := s.post(a.reading, func(ctx context.Context) error { return w.board.Enter(ctx, a.cfg.NodeID) }); err != nil {
			return err
		}
		w.entered = now
	}
	notices, err := call(a.reading, &s.calls, a.cfg.LoadTimeout, w.board.Notices)
	if err != nil {
		return err
	}
	posted := map[string]int64{} // the regresses that the others know of
	for _, n := range notices {
		if a.router.Route(n.Tag) != s.index {
			continue
		}
		posted[n.Tag] = n.Regress
		m, heeded := a.heed(n)
		if heeded == nil && n.Asked != w.answered[n.Tag] {
			answer := Answer{Tag: n.Tag, Node: a.cfg.NodeID, Asked: n.Asked, High: m.High, Latched: m.Latched}
			if heeded = s.post(a.reading, func(ctx context.Context) error { return w.board.Answer(ctx, answer) }); heeded == nil {
				w.answered[n.Tag] = n.Asked
			}
		}
		err = errors.Join(err, heeded)
	}
	return errors.Join(err, s.tell(posted))
}

// tell posts the tags that are latched on this node and of which the others do not know,
// but for those of which only this node lost its memory.
// Under a cluster fence they need not know: it refuses what this node refused.
func (s *shard) tell(posted map[string]int64) (err error) {
	a := s.alloc
	if a.fence.latchedTags() == 0 || a.cluster != nil && !a.cluster.degrade {
		return nil
	}
	marks := a.fence.all()
	for _, tag := range slices.Sorted(maps.Keys(marks)) {
		m := marks[tag]
		if m.Latched && !m.Rebuilt && posted[tag] < m.High && a.router.Route(tag) == s.index {
			n := Notice{Tag: tag, Regress: m.High}
			err = errors.Join(err, s.post(a.reading, func(ctx context.Context) error { return s.watcher.board.Post(ctx, n) }))
		}
	}
	return err
}

// post is a call of the board that returns nothing.
func (s *shard) post(parent context.Context, f func(context.Context) error) error {
	_, err := call(parent, &s.calls, s.alloc.cfg.LoadTimeout, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, f(ctx)
	})
	return err
}

// leaveBoards takes the node off the lists of those that a repair asks.
func (a *Allocator) leaveBoards(ctx context.Context) {
	boards := group{rt: a.rt}
	for _, s := range a.shards {
		if s.watcher.board == nil || s.admits() != nil {
			continue
		}
		boards.start(func() {
			err := s.post(ctx, func(ctx context.Context) error { return s.watcher.board.Leave(ctx, a.cfg.NodeID) })
			if err != nil && !errors.Is(err, ErrSchema) {
				a.log.Info("this node stays on the list of those that a repair asks", "store", s.name, "error", err)
			}
		})
	}
	_ = boards.wait(ctx) // what takes longer only makes a repair ask for this node
}
