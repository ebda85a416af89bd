package segment

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
)

// Tag is a handle to one tag; it saves the look-up by name. It stays valid while
// the tag is deleted and created again. All methods are safe for concurrent use.
type Tag struct {
	cur   atomic.Pointer[chunk] // never nil; changes under mu, or in follow
	name  string
	alloc *Allocator
	shard *shard // nil if no rule sends the name to a database

	mu      sync.Mutex
	state   tagState
	epoch   uint64      // of the shard's last sync that saw the row
	asked   uint64      // of the shard's last sync that had begun when the reading began that was taken over last
	news    uint64      // how often the row was taken over
	step    int64       // the row's own step as last seen, 0 if unknown or invalid
	options *tagOptions // nil: none, as most tags
	strict  bool        // as in Options, also where the others cannot be used
	known   evidence
	early   early   // the period that the node's clock was in too early, zero if none
	misfit  string  // why the node's clock does not fit the period of the row; "": it does
	buf     *buffer // nil until the tag is first used
	tight   bool    // the alarm format is raised
}

type tagState int8

const (
	// listed: in the table. The store had the tag's row when it was last read.
	listed tagState = iota
	// provisional: in Allocator.pending. A caller wants the tag, and its first load shows
	// whether the store has its row.
	provisional
	// detached: this Tag is not, or no longer, in the table. Calls look its name up in the
	// table, and share the chunk of the Tag that they find there.
	detached
)

// Next returns the tag's next ID. Unique for the tag over all nodes; increasing in
// the order of calls within this process. Errors as in leaf.Issuer.
func (t *Tag) Next(ctx context.Context) (int64, error) {
	c := t.cur.Load()
	id := c.cursor.Add(1) - 1
	if id < c.end && c.term == nil {
		return id, nil
	}
	return t.nextSlow(ctx, c, id)
}

// NextN returns exactly n IDs, 1 <= n <= leaf.MaxBatch, as increasing ranges, or
// an error and no IDs. IDs taken before an error are lost.
func (t *Tag) NextN(ctx context.Context, n int) ([]leaf.Range, error) {
	if n < 1 || n > leaf.MaxBatch {
		return nil, leaf.BadField("count", n, fmt.Sprintf("must be 1 to %d", leaf.MaxBatch))
	}
	return t.nextN(ctx, int64(n))
}

// Name returns the tag's name.
func (t *Tag) Name() string { return t.name }

// nextSlow is Next when id, which was taken from c, may be issued within c's term only, or not at all.
func (t *Tag) nextSlow(ctx context.Context, c *chunk, id int64) (int64, error) {
	if id < c.end && c.term.Valid() {
		return id, nil
	}
	got, err := t.nextN(ctx, 1)
	if err != nil {
		return 0, err
	}
	return got[0].Lo, nil
}

// nextN alternates between taking from the current chunk and advancing to the
// next one, and waits where advance says so. A batch that the chunk cannot fill takes
// nothing from it: that is for gather to decide.
func (t *Tag) nextN(ctx context.Context, n int64) ([]leaf.Range, error) {
	w := waiter{alloc: t.alloc, wants: n, got: make([]leaf.Range, 0, 1)}
	defer w.leave()
	for {
		c := t.cur.Load()
		if len(w.got) == 0 { // else advance looks whether the call may keep it
			if r := c.takeWhole(w.wants); r.Len() > 0 {
				w.within(c.term)
				w.keep(r)
			}
			if w.done() {
				return w.got, nil
			}
		}
		on, err := t.advance(c, &w)
		w.settle()
		if w.done() {
			return w.got, nil
		}
		switch {
		case err != nil:
		case on.admit:
			err = w.admit(ctx)
		case on.wake != nil:
			err = w.wait(ctx, on)
		}
		if err != nil {
			return nil, err
		}
	}
}

// obstacle is what keeps a caller from IDs: it must ask whether it may wait, or wait for a
// wake-up, or for the moment when a failed load may be tried again. The zero obstacle means
// that there is none.
type obstacle struct {
	admit bool
	wake  chan struct{}
	retry time.Duration // 0: no limit
}

// waiter is one call's waiting. It limits the whole call to Config.MaxWait and is
// counted by the tag it waits for, because a provisional tag lives only as long as
// a caller waits.
type waiter struct {
	alloc  *Allocator
	ctx    context.Context //nolint:containedctx // the same with MaxWait; made only if the call waits
	cancel context.CancelFunc
	tag    *Tag // counts this waiter
	before *Tag // counted it before, until settle

	admitted bool // the next wait is allowed

	wants int64        // IDs that the call still wants
	term  Term         // of the ranges that they are from
	floor int64        // of the tag when the call took what it has, see buffer
	got   []leaf.Range // what it has
	proof *Tag         // the tag that loads is about
	loads int          // loads of it when the call began, or last took something
}

// keep adds r to what the call has.
func (w *waiter) keep(r leaf.Range) {
	w.got = leaf.AppendRange(w.got, r)
	w.wants -= r.Len()
}

// joinLocked makes t count the waiter. t.mu is held, so the count is right before
// the load that t is about to ask for can look at it.
func (w *waiter) joinLocked(t *Tag, b *buffer) {
	if w.tag != t {
		b.waiters++
		w.before, w.tag = w.tag, t
	}
}

// settle takes the waiter off the tag that counted it before. No lock is held.
func (w *waiter) settle() {
	if w.before != nil {
		w.before.uncount()
		w.before = nil
	}
}

// admit asks whether the call may wait, before a load is wanted for it and with no lock held.
func (w *waiter) admit(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return w.tag.gaveUp(err) // no caller would take what it asked for
	}
	if err := leaf.Admit(ctx); err != nil {
		return err
	}
	w.admitted = true
	return nil
}

func (w *waiter) wait(ctx context.Context, on obstacle) error {
	if w.ctx == nil {
		w.ctx, w.cancel = w.alloc.rt.WithTimeout(ctx, w.alloc.cfg.MaxWait)
		w.alloc.counters.waits.Add(1)
	}
	w.admitted = false
	if err := w.alloc.rt.Wait(w.ctx, on.wake, on.retry); err != nil {
		return w.tag.gaveUp(err)
	}
	return nil
}

func (w *waiter) leave() {
	if w.tag != nil {
		w.tag.uncount()
	}
	if w.cancel != nil {
		w.cancel()
	}
}

// uncount notes that a waiter left. The last waiter takes back the load that it waited for,
// so that the store does no work that no caller wants, and forgets a provisional tag. A load
// that has begun goes on.
//
// Why no caller is left waiting for a load that never comes: waiters are counted, and loads
// asked for and cancelled, under t.mu; a load leaves its line once, under queue.mu.
//   - A caller arrives while the last waiter leaves. Either it is counted first, so that
//     the other is not the last; or it finds that nothing is loading, and asks anew.
//   - The load begins while the last waiter leaves. Either it is cancelled first, and
//     the queue does not find it; or it has left the line, drop returns false, and
//     a caller that arrives before it ends waits for it, as if the last one had stayed.
//   - The queue closes meanwhile: it has emptied its lines, and Close ends the load.
func (t *Tag) uncount() {
	t.mu.Lock()
	b := t.buffer()
	b.waiters--
	if b.waiters == 0 && b.loading() && !b.ahead && t.shard.queue.drop(b.place) {
		b.place, b.asked = nil, time.Time{}
	}
	abandoned := t.state == provisional && b.waiters == 0 && !b.loading()
	t.mu.Unlock()
	if abandoned {
		t.alloc.forget(t)
	}
}

// gaveUp returns the error of a caller that waited for as long as it could. The
// cause is kept for errors.Is and for logs, but not in the text, which goes to
// clients.
func (t *Tag) gaveUp(waitErr error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.buffer()
	if b.loading() && b.ahead { // else uncount drops the load
		t.shard.queue.left(b.place)
	}
	e := &unservedError{tag: t.name, sentinel: leaf.ErrExhausted, cause: errors.Join(waitErr, b.failed), failed: b.failed}
	switch {
	case b.last.count == 0:
		e.sentinel = leaf.ErrNotReady
	case !b.exhausted && t.state != detached && errors.Is(waitErr, context.DeadlineExceeded): // else the caller left by itself
		b.exhausted = true
		t.alloc.alarms.Raise(exhaustedAlarm(t.name, b.failed))
		t.shard.retry.add(t) // the last caller takes its load away with it, and perhaps none comes again
	}
	return e
}

type unservedError struct {
	tag      string
	sentinel error
	cause    error
	failed   error // why the last load failed; nil: it did not, or has not ended
}

// Cause returns why the last load of the tag failed that err speaks of, and nil if that is
// not known. The text of err leaves it out, because err goes to clients, and the cause
// names hosts and users. It is for logs and administrators.
func Cause(err error) error {
	if e, ok := errors.AsType[*unservedError](err); ok {
		return e.failed
	}
	return nil
}

func (e *unservedError) Error() string {
	return fmt.Sprintf("%v: no range for tag %q arrived in time", leaf.ClassOf(e).Err, e.tag) // as the protocols say by the cause
}

func (e *unservedError) Unwrap() []error { return []error{e.sentinel, e.cause} }
