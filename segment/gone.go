package segment

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf/internal/bounded"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// A row can vanish without leaf tag delete, which keeps its end on the board: an operator
// deletes it with SQL, or the database loses it. The error of an unknown tag then says to
// create the tag, and the new row must not begin below the old one's end. Each node that
// knows numbers of the tag therefore tells the board what it knows, without being asked, when
// a reading of all rows lacks the tag's row, or a load does not find it.

// noteGone notes which tags of the shard this node knows numbers of, and the reading number
// epoch of all rows did not find. The reading has been applied to the table.
func (s *shard) noteGone(epoch uint64) {
	a := s.alloc
	gone := map[string]bool{}
	note := func(tag string) {
		if t := a.tag(tag); a.router.Route(tag) == s.index && (t == nil || t.missed(epoch)) {
			gone[tag] = true
		}
	}
	for tag, m := range a.fence.All() {
		if m.High > 0 {
			note(tag)
		}
	}
	for _, tag := range a.heardAndGone() {
		note(tag)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = gone
}

// heardAndGone returns the tags that have left the table, and of which this node took numbers to its callers.
func (a *Allocator) heardAndGone() (tags []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for tag, e := range a.known {
		if e.heard > 0 {
			tags = append(tags, tag)
		}
	}
	return tags
}

// noteMiss is noteGone for one tag whose row the store does not have. The board is told at
// once, but not each time that a caller asks for the tag.
func (s *shard) noteMiss(tag string) {
	if s.alloc.fence.Mark(tag).High == 0 {
		return
	}
	s.mu.Lock()
	known := s.gone[tag]
	s.gone[tag] = true
	s.mu.Unlock()
	if !known {
		s.lookNow()
	}
}

// provePause is how long this node believes that the board still has what it was told.
const provePause = time.Minute

// told is what the board was told of a tag whose row is gone, and when this was tried last.
type told struct {
	high int64 // -1: it did not take the answer
	at   time.Time
}

// tellGone answers about the tags whose rows are gone, once for each number that there is to be
// told, again when the board has lost an answer, and again when it could not be read, because that
// may have been a failover to a database that lacks the answer. Tags that were never told come
// first, then those that were tried longest ago: one that fails must not hide the others. The
// answer repeats the last question that this node has answered, because it takes the place of
// that answer. What takes too long is left to the next look, which comes at once unless one failed.
func (s *shard) tellGone(ctx context.Context) error {
	a, w := s.alloc, &s.watcher
	s.mu.Lock()
	gone := maps.Clone(s.gone)
	s.mu.Unlock()
	maps.DeleteFunc(w.told, func(tag string, _ told) bool { return !gone[tag] })
	began := a.rt.Now()
	untold := func() []string {
		tags := maps.Clone(gone)
		maps.DeleteFunc(tags, func(tag string, _ bool) bool {
			t, last := a.tag(tag), w.told[tag]
			back := t != nil && !t.missed(s.epoch.Load())
			return back || last.high == max(a.fence.Known(tag).High, a.heardOf(tag))
		})
		return slices.SortedFunc(maps.Keys(tags), w.byTelling)
	}
	tags := untold()
	if len(tags) > 0 || since(w.proved, began) >= provePause {
		if err := s.prove(ctx); err != nil {
			return err
		}
		w.proved, tags = began, untold()
	}
	highs := make([]int64, len(tags))
	left, err := s.postMany(len(tags), answerPause, func(i int) error { // a regress must be heard soon
		tag := tags[i]
		m := a.say(tag) // a range whose reply is on its way is not in it, and is dropped
		highs[i] = m.High
		return s.postAnswer(ctx, tag, w.answered[tag], m)
	}, func(i int, err error) {
		if err != nil {
			highs[i] = -1
		}
		w.told[tags[i]] = told{highs[i], a.rt.Now()}
	})
	w.behind = w.behind || left && err == nil
	return err
}

// byTelling orders tags by when the board was told of them, those that it was never told of first.
func (w *watcher) byTelling(x, y string) int {
	return cmp.Or(w.told[x].at.Compare(w.told[y].at), cmp.Compare(x, y))
}

// prove forgets what the board was told if the board does not have what it took last, because a
// backup took its place or it was emptied. It comes before each new answer, which the board has.
func (s *shard) prove(ctx context.Context) error {
	w := &s.watcher
	taken := slices.Collect(maps.Keys(w.told))
	taken = slices.DeleteFunc(taken, func(tag string) bool { return w.told[tag].high < 0 })
	if len(taken) == 0 {
		return nil
	}
	last := slices.MaxFunc(taken, w.byTelling)
	answers, err := bounded.Do(ctx, &s.calls, s.alloc.cfg.LoadTimeout, func(ctx context.Context) ([]Answer, error) { return w.board.Answers(ctx, last) })
	if err == nil && !slices.ContainsFunc(answers, func(x Answer) bool { return x.Node == s.boardName() && x.High >= w.told[last].high }) {
		clear(w.told)
	}
	return err
}

// tellReturns answers about the tags of which this node has sent unused IDs back and does
// not know whether they have arrived: a later repair does not wait for a node that has left.
func (s *shard) tellReturns(ctx context.Context) (err error) {
	a := s.alloc
	for _, tag := range a.fence.Returning() {
		if a.router.Route(tag) == s.index {
			err = errors.Join(err, s.postAnswer(ctx, tag, s.watcher.answered[tag], a.say(tag)))
		}
	}
	return err
}

// postAnswer tells the board what this node knows of a tag.
func (s *shard) postAnswer(ctx context.Context, tag string, asked int64, m fence.Mark) error {
	x := Answer{Tag: tag, Node: s.boardName(), Asked: asked, High: m.High, Latched: m.Latched}
	return s.post(ctx, func(ctx context.Context) error { return s.watcher.board.Answer(ctx, x) })
}
