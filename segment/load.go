package segment

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
	"github.com/leaf-idgen/leaf/segment/fence"
)

// load does one load of the tag, from a goroutine of the shard's queue, and
// returns what it tells about the store. It is carried through when callers leave meanwhile,
// and what it brings is kept for the next caller.
func (t *Tag) load() (health, error) {
	t.mu.Lock()
	state, neverRead := t.state, t.news == 0
	t.mu.Unlock()
	if err := t.shard.refuses(); err != nil {
		err = fence.Blocked(err)
		return t.loadFailed(err), err
	}
	switch {
	case state == detached: // deleted meanwhile: reserving would only waste a range
		t.loadEnded(func(b *buffer) { b.asked = time.Time{} })
		return unknownHealth, nil
	case neverRead: // its options may say that another node owns it, or that its numbers begin anew
		asked := t.shard.epoch.Load()
		row, err := t.shard.lookup(t.alloc.base, t.name)
		if err != nil {
			return t.loadFailed(err), err
		}
		if !t.alloc.list(t, row, asked) {
			t.loadEnded(func(*buffer) {})
			return healthy, nil
		}
	}
	term, owns, behind := t.term()
	if !owns && behind == nil { // another node issues the tag: nothing has failed
		t.loadEnded(func(b *buffer) {
			b.asked = time.Time{}
			t.shard.retry.drop(t)
			t.stockedLocked(b) // its callers go to the owner
		})
		return unknownHealth, nil
	}
	r, err := t.reserve()
	in, hasPeriod := term.(periodTerm)
	if err == nil && hasPeriod {
		r, err = t.inPeriod(in.of, r)
		in.day = periodOf(r.Range.Lo)
		term = in
	}
	r.term = term
	if err != nil {
		return t.loadFailed(err), err
	}
	r.behind = behind
	t.loadDone(r)
	return healthy, nil
}

// reserved is a range that passed the fences.
type reserved struct {
	Reservation
	prior int64      // the own fence before it
	wrote fence.Held // the cluster fence's entry for its end
	term  Term       // of the node when it was asked for, nil in plain order

	behind *int64 // as in buffer
}

// reserve takes a range. One that is lost to another node in the cluster fence is
// dropped and replaced at once; that is no fault.
func (t *Tag) reserve() (r reserved, err error) {
	a := t.alloc
	for range fence.MaxLost {
		if r, err = t.tryReserve(); !errors.Is(err, fence.ErrMoved) || a.isClosing() {
			return r, err
		}
		a.counters.races.Add(1)
	}
	return r, err
}

// tryReserve takes a range from the store between the two doors of the fence: Begin before
// anything is reserved, and Admit before anything is served.
func (t *Tag) tryReserve() (reserved, error) {
	a := t.alloc
	l, err := a.fence.Begin(a.base, t.name)
	switch {
	case errors.Is(err, fence.ErrLatched):
		return reserved{}, t.latchedError()
	case err != nil:
		return reserved{}, err
	}
	defer l.End()
	t.mu.Lock()
	step, options, last := t.step, t.optionsLocked(), t.buffer().last
	asked, known := t.buffer().asked, t.known // what is heard from now on may lie above a range that is on its way
	t.mu.Unlock()
	req := a.pace.request(t.name, step, options, last, asked)
	res, err := bounded.Do(a.base, &t.shard.calls, a.cfg.LoadTimeout, func(ctx context.Context) (Reservation, error) {
		return t.shard.store.Reserve(ctx, req)
	})
	if otherCluster(err) || errors.Is(err, ErrRule) {
		t.shard.disown(err)
		return reserved{}, fence.Blocked(err)
	}
	if high := l.Before.High; high > 0 && errors.Is(err, errBelowZero) {
		regress := &fence.RegressError{Seen: high, Why: fmt.Sprintf("this node holds numbers up to %d", high)}
		return reserved{}, t.latch("a row with a max_id below 0", l.Before, regress)
	}
	if err != nil {
		return reserved{}, fmt.Errorf("reserve a range for tag %q: %w", t.name, err)
	}
	r := res.Range
	if res.Step < 1 || res.Step > MaxStep || r.Lo < 0 || r.Hi > MaxMaxID || r.Len() != req.LengthFor(res.Step) {
		return reserved{}, fmt.Errorf("store answered %v with step %d for %+v: dropped", r, res.Step, req)
	}
	if regress := known.against(r.Lo); regress != nil {
		return reserved{}, t.latch(fmt.Sprint(r), l.Before, regress)
	}
	wrote, err := l.Admit(a.base, r)
	if regress, ok := errors.AsType[*fence.RegressError](err); ok {
		return reserved{}, t.latch(fmt.Sprint(r), l.Before, regress)
	}
	if err != nil {
		a.counters.lost[lossRefused].Add(r.Len())
		return reserved{}, fmt.Errorf("range %v for tag %q is dropped: %w", r, t.name, err)
	}
	return reserved{Reservation: res, prior: l.Before.High, wrote: wrote}, nil
}

// latch refuses a range and closes the tag (rule A): the statement that returned
// it has moved the row, so the next range could pass our fence although another
// node issued it long ago. Memory is latched even if the disk fails; every later
// write of the fence file carries the latch.
//
// A reply that a repair has overtaken latches, too: it may show the loss that was repaired,
// or a later one, and its statement has moved the row.
func (t *Tag) latch(offered string, before fence.Mark, regress *fence.RegressError) error {
	a, why := t.alloc, regress.Why
	a.counters.regresses.Add(1)
	if now := a.fence.Mark(t.name); now != before && !now.Latched {
		why += "; the load began before a repair of the tag ended, and perhaps shows the loss that was repaired: repair the tag again"
	}
	err := fmt.Errorf("%w: tag %q was offered %s, but %s", leaf.ErrRegress, t.name, offered, why)
	text := fmt.Sprintf("store went backwards; the tag is latched until repaired: store %q offered %s of tag %q, but %s", t.shard.name, offered, t.name, why)
	a.fence.Latch(t.name, regress.Seen, regressAlarm(t.name, text))
	if a.fence.Number() == 0 {
		a.dropBelow(t.name, a.fence.Mark(t.name).High) // see Allocator.heed
	}
	t.shard.lookNow()
	if diskErr := a.fence.Settle(); diskErr != nil { // last: the disk may hang
		a.log.Error("latch is not on the disk yet; do not restart this node", "tag", t.name, "error", diskErr)
	}
	return err
}

// loadEnded runs change on the buffer of a load that has ended and wakes all waiters.
func (t *Tag) loadEnded(change func(*buffer)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buffer()
	b.place = nil
	change(b)
	b.wakeAll()
}

func (t *Tag) loadDone(r reserved) {
	a := t.alloc
	a.counters.loads.Add(1)
	t.shard.block(nil)
	t.loadEnded(func(b *buffer) {
		if t.state == detached || a.isRetired() || t.shard.refuses() != nil {
			a.counters.lost[lossLate].Add(r.Range.Len()) // deleted, shut down or moved elsewhere meanwhile
			return
		}
		if r.behind != nil {
			b.checked = r.behind
		}
		if err := t.termLocked(b); err != nil || r.term != b.term {
			a.counters.lost[lossOf(r.term)].Add(r.Range.Len())
			b.asked = time.Time{}
			return
		}
		if r.Range.Lo < b.floor {
			a.counters.lost[lossRepair].Add(r.Range.Len()) // it was under way when the tag was stopped or repaired
			b.asked = time.Time{}
			return
		}
		if b.last.count == 0 {
			b.prior = max(b.prior, r.prior)
		}
		t.step = r.Step
		t.keepLocked(b, r)
		b.asked, b.retryAt, b.failures, b.failed = time.Time{}, time.Time{}, 0, nil
		t.shard.retry.drop(t)
		t.rowIsFineLocked(b)
		t.stockedLocked(b)
		t.fitsLocked(r.Range.Hi)
	})
}

// keepLocked puts a range behind those in memory. Without room for it, the load was to show where the row is. t.mu is held.
func (t *Tag) keepLocked(b *buffer, r reserved) {
	if b.after.Len() > 0 {
		t.alloc.counters.lost[lossLate].Add(r.Range.Len())
		return
	}
	if !r.wrote.Follows(b.wrote) {
		b.cut = r.Range.Lo
	}
	if b.wrote = r.wrote; b.next.Len() == 0 {
		b.next = r.Range
	} else {
		b.after = r.Range
	}
	b.last = lastLoad{count: b.last.count + 1, asked: b.asked, step: r.Step, length: r.Range.Len()}
}

// loadFailed notes the failure and returns what it tells about the store.
func (t *Tag) loadFailed(err error) health {
	a := t.alloc
	unknown := errors.Is(err, leaf.ErrUnknownTag)
	_, tooEarly := errors.AsType[*earlyError](err)
	if unknown { // the store answered: no fault
		a.counters.unknown.Add(1)
	} else {
		a.counters.failures.Add(1)
	}
	if !fence.IsBlocked(err) {
		t.shard.block(nil)
	}
	var failures int
	t.loadEnded(func(b *buffer) {
		b.failures++
		failures = b.failures
		b.failed = err
		if !tooEarly { // the next load waits for the clocks
			b.retryAt = a.rt.Now().Add(bounded.Backoff(a.rt, b.failures))
		}
		switch {
		case t.state != listed, unknown, tooEarly, errors.Is(err, leaf.ErrRegress):
		case needsOperator(err):
			b.badRow = err
			a.alarms.Raise(rowAlarm(t.name, err))
		default:
			t.shard.retry.add(t)
		}
	})
	a.forget(t) // a provisional tag whose callers left while it loaded
	switch {
	case unknown:
		if !t.hasStock() { // else the next reading decides, which sees how many rows are gone
			a.unlist(t)
		}
		return healthy
	case errors.Is(err, leaf.ErrRegress): // told when it latched
		return unknownHealth
	case bits.OnesCount(uint(failures)) == 1: // the 1st, 2nd, 4th, 8th ... in a row
		a.log.Warn("load failed", "tag", t.name, "store", t.shard.name, "in_a_row", failures, "error", err)
	}
	switch {
	case needsOperator(err), tooEarly, errors.Is(err, fence.ErrMoved):
		return healthy
	case errors.Is(err, fence.ErrSuspect):
		return unknownHealth // other tags may be loaded
	case fence.IsBlocked(err):
		t.shard.block(err)
		return blocked
	case errors.Is(err, fence.ErrOvertaken):
		return unknownHealth
	case errors.Is(err, context.DeadlineExceeded):
		return late
	}
	return unusable
}

func (t *Tag) optionsLocked() Options {
	if t.options == nil {
		return Options{}
	}
	return t.options.Options
}
