package segment

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// buffer is the double buffer of a tag that is in use. Tag.mu guards it.
type buffer struct {
	whole leaf.Range // the range being issued, empty before the first one
	rest  leaf.Range // its part that is not published as a chunk yet
	next  leaf.Range // the range after it, empty if not loaded
	after leaf.Range // the range after that, loaded only for a batch that wants more
	prior int64      // the fence before this process's first range, or the floor
	floor int64      // ranges that start below are dropped, see Allocator.heed
	term  Term       // in which the ranges were reserved, nil in plain order

	wrote fence.Held // the entry that holds the end of the last range; none if that was taken without
	cut   int64      // where the last range begins whose entry does not follow that of the range before it

	exhausted bool  // the alarm exhausted is raised
	badRow    error // why the alarm row is raised; nil: it is not
	unread    bool  // because the last reading could not read the row
	crossed   bool  // the alarm row is raised for the row's options

	behind  *int64 // a load is wanted because the row was read here, below numbers that this node knows; see shard.checkBehind
	checked *int64 // where the row was read when such a load showed last that it was not there

	last     lastLoad
	asked    time.Time     // when the load that is wanted was first asked for
	ahead    bool          // the load is wanted although perhaps no caller waits for it
	place    *list.Element // of the load that is queued or under way, in a line of the queue until it begins; nil: none is
	failures int           // loads that failed since the last good one
	retryAt  time.Time     // no load before
	failed   error         // why the last load failed, nil if it did not

	wake    chan struct{} // closed at every change that a waiter must see; nil if no caller waits
	waiters int

	spent  int64   // IDs of the ranges before whole
	looks  [2]look // the last two of Allocator.remember, newest first; the first use counts as one
	usedAt time.Time
}

// buffer returns t.buf, made at first use: an idle tag does without.
func (t *Tag) buffer() *buffer {
	if t.buf == nil {
		t.buf = &buffer{looks: [2]look{{at: t.alloc.rt.Now()}}}
	}
	return t.buf
}

// loading reports whether a load is queued or under way.
func (b *buffer) loading() bool { return b.place != nil }

// wakeAll lets every waiter look again.
func (b *buffer) wakeAll() {
	if b.wake != nil {
		close(b.wake)
		b.wake = nil
	}
}

// advance replaces the used-up chunk seen by the next one, or says what to wait
// for. A nil error with a zero obstacle means: try again.
//
// Two callers that find one chunk used up both come here; the second one finds
// another chunk than the one it saw, or an obstacle, and publishes nothing.
func (t *Tag) advance(seen *chunk, w *waiter) (obstacle, error) {
	t.mu.Lock()
	if t.state == detached {
		t.mu.Unlock()
		return t.follow(seen, w)
	}
	defer t.mu.Unlock()
	b := t.buffer()
	if err := t.termLocked(b); err != nil {
		return obstacle{}, err
	}
	w.above(b.floor)
	w.within(b.term)
	switch {
	case w.wants > 1, len(w.got) > 0:
		return t.gather(b, w)
	case t.cur.Load() != seen:
		return obstacle{}, nil
	case b.rest.Len() > 0:
		t.publish(b)
		if b.next.Len() == 0 {
			t.ask(b, true)
		}
		return obstacle{}, nil
	case b.next.Len() > 0:
		b.turn()
		t.publish(b)
		return obstacle{}, nil
	}
	return t.block(b, w)
}

// turn makes the next range the current one.
func (b *buffer) turn() {
	b.spent += b.whole.Len()
	b.whole, b.rest, b.next, b.after = b.next, b.next, b.after, leaf.Range{}
}

// publish makes the next part of the current range takable: a tenth of the range
// while no next range is in memory, so that the end of the part is the moment to
// ask for one, and all that is left once it is.
func (t *Tag) publish(b *buffer) {
	part := b.rest
	if b.next.Len() == 0 {
		part.Hi = min(part.Hi, part.Lo+b.tenth())
	}
	b.rest.Lo = part.Hi
	t.cur.Store(newChunk(part, b.term))
}

// tenth is the length of a chunk while no next range is in memory.
func (b *buffer) tenth() int64 { return (b.whole.Len() + 9) / 10 }

// ask wants a load: for a caller that waits, or ahead of need. There is no second one
// while one is queued or under way, and none before the back-off of a failed one has
// passed.
func (t *Tag) ask(b *buffer, ahead bool) {
	if b.loading() {
		b.ahead = b.ahead || ahead
		t.shard.queue.again(b.place, ahead)
		return
	}
	now := t.alloc.rt.Now()
	if now.Before(b.retryAt) || t.alloc.fence.Mark(t.name).Latched {
		return
	}
	if b.asked.IsZero() {
		b.asked = now
	}
	q := &t.shard.queue
	line := &q.known
	switch {
	case t.state == provisional:
		line = &q.unknown
	case b.late():
		line = &q.slow
	}
	b.place = q.push(t, line, ahead)
	b.ahead = ahead
}

// checkBehind wants a load, whatever is in memory and whichever node issues the tag, because the row was read at maxID,
// below numbers that this node knows. A reading that such a load has refuted is believed no more: a replica may answer
// like this for long.
func (t *Tag) checkBehind(maxID int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buffer()
	if refuted := b.checked != nil && *b.checked == maxID; t.state == listed && !refuted && !t.alloc.fence.Mark(t.name).Latched {
		b.behind = &maxID
		t.ask(b, true)
	}
}

// late reports whether the last load took too long: the tag is slow then, see queue.
func (b *buffer) late() bool { return errors.Is(b.failed, context.DeadlineExceeded) }

// block is advance without anything in memory that the caller may take.
func (t *Tag) block(b *buffer, w *waiter) (obstacle, error) {
	w.joinLocked(t, b)
	if t.stockLocked() == 0 {
		t.cur.Store(t.alloc.drained) // callers that are refused must not add to a used-up chunk for ever
	}
	if err := t.shard.refuses(); err != nil {
		return obstacle{}, err
	}
	if t.alloc.fence.Mark(t.name).Latched {
		return obstacle{}, t.latchedError()
	}
	if !w.admitted {
		return obstacle{admit: true}, nil
	}
	t.ask(b, false)
	if b.loading() {
		return b.waitFor(0), nil
	}
	wait := b.retryAt.Sub(t.alloc.rt.Now())
	switch {
	case t.alloc.isClosing():
		return obstacle{}, fmt.Errorf("%w: shutting down", leaf.ErrNotReady)
	case wait <= 0:
		return obstacle{}, nil // the back-off ended a moment ago
	case needsOperator(b.failed):
		return obstacle{}, b.failed
	}
	return b.waitFor(wait), nil
}

func (b *buffer) waitFor(retry time.Duration) obstacle {
	if b.wake == nil {
		b.wake = make(chan struct{})
	}
	return obstacle{wake: b.wake, retry: retry}
}

// needsOperator reports whether err will not go away by waiting.
func needsOperator(err error) bool {
	return errors.Is(err, leaf.ErrInvalidRow) || errors.Is(err, leaf.ErrOverflow)
}

func (t *Tag) latchedError() error {
	return fmt.Errorf("%w: tag %q; an operator must run leaf tag repair", leaf.ErrRegress, t.name)
}

// retire ends the tag's ranges. It returns the end of what was issued, the unused
// tail of the last range, empty if there is none, from both of which nothing is
// issued any more, and the entry of the cluster fence that holds the range's end.
//
// The tail is the ranges after the current one with its rest before them, as far as
// they touch; if they do not, the rest of the current one is lost, because another
// node's numbers lie between. Nor does the tail go on below a range whose entry of the cluster
// fence does not follow that of the range before: another node may hold numbers there.
func (t *Tag) retire() (issued int64, tail leaf.Range, wrote fence.Held) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.buf == nil {
		return 0, leaf.Range{}, fence.Held{}
	}
	b := t.buf
	issued = b.prior
	if b.whole.Len() > 0 {
		issued = b.whole.Hi
		if c := t.cur.Load(); c != t.alloc.drained {
			issued = c.shut().Lo
			tail = leaf.Range{Lo: issued, Hi: b.whole.Hi}
		}
	}
	for _, r := range []leaf.Range{b.next, b.after} {
		if r.Len() == 0 {
			continue
		}
		if tail.Hi != r.Lo || tail.Len() == 0 || r.Lo == b.cut {
			tail.Lo = r.Lo
		}
		tail.Hi = r.Hi
	}
	if b.loading() {
		// The load that Close did not wait for may still move row and fence.
		t.alloc.counters.lost[lossStop].Add(tail.Len())
		tail = leaf.Range{}
	}
	t.cur.Store(t.alloc.drained)
	b.whole, b.rest, b.next, b.after = leaf.Range{}, leaf.Range{}, leaf.Range{}, leaf.Range{}
	b.wakeAll()
	return issued, tail, b.wrote
}
