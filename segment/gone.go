package segment

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/leaf-idgen/leaf/segment/fence"
)

// A row can vanish without leaf tag delete, which keeps its end on the board: an operator
// deletes it with SQL, or the database loses it. The error of an unknown tag then says to
// create the tag, and the new row must not begin below the old one's end. Each node that
// took ranges of the tag therefore tells the board what it knows, without being asked, when
// a reading of all rows lacks the tag's row, or a load does not find it.

// noteGone notes which tags of the shard this node took ranges of, and the reading number
// epoch of all rows did not find. The reading has been applied to the table.
func (s *shard) noteGone(epoch uint64) {
	a := s.alloc
	gone := map[string]bool{}
	for tag, m := range a.fence.All() {
		if t := a.tag(tag); m.High > 0 && a.router.Route(tag) == s.index && (t == nil || t.missed(epoch)) {
			gone[tag] = true
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = gone
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

// tellGone answers about the tags whose rows are gone, once for each number that there is
// to be told. The answer repeats the last question that this node has answered, because it
// takes the place of that answer. What takes too long is left to the next look.
func (s *shard) tellGone(ctx context.Context) (err error) {
	a, w := s.alloc, &s.watcher
	s.mu.Lock()
	gone := maps.Clone(s.gone)
	s.mu.Unlock()
	maps.DeleteFunc(w.told, func(tag string, _ int64) bool { return !gone[tag] })
	began := a.rt.Now()
	for _, tag := range slices.Sorted(maps.Keys(gone)) {
		if a.rt.Now().Sub(began) >= answerPause { // a regress must be heard soon
			break
		}
		if t := a.tag(tag); t != nil && !t.missed(s.epoch.Load()) {
			continue // its row is back
		}
		if told, ok := w.told[tag]; ok && told == a.fence.Known(tag).High {
			continue
		}
		m := a.fence.Say(tag) // a range whose reply is on its way is not in it, and is dropped
		failed := s.postAnswer(ctx, tag, w.answered[tag], m)
		if failed == nil {
			w.told[tag] = m.High
		}
		err = errors.Join(err, failed)
	}
	return err
}

// tellReturns answers about the tags of which this node has sent unused IDs back and does
// not know whether they have arrived: a later repair does not wait for a node that has left.
func (s *shard) tellReturns(ctx context.Context) (err error) {
	a := s.alloc
	for _, tag := range a.fence.Returning() {
		if a.router.Route(tag) == s.index {
			err = errors.Join(err, s.postAnswer(ctx, tag, s.watcher.answered[tag], a.fence.Say(tag)))
		}
	}
	return err
}

// postAnswer tells the board what this node knows of a tag.
func (s *shard) postAnswer(ctx context.Context, tag string, asked int64, m fence.Mark) error {
	x := Answer{Tag: tag, Node: s.alloc.cfg.NodeID, Asked: asked, High: m.High, Latched: m.Latched}
	return s.post(ctx, func(ctx context.Context) error { return s.watcher.board.Answer(ctx, x) })
}
