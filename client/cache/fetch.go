package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/leaf-idgen/leaf"
)

// flight is one fetch, and the callers that wait for it.
type flight struct {
	n    int // IDs asked for
	done chan struct{}
	err  error // valid once done is closed

	doubtful bool // its IDs are dropped, see heed; guarded by Tag.mu
}

// turn makes sure that there is a chunk with IDs, or returns the fetch to wait for; began
// says that this call started it.
func (t *Tag) turn(n int) (_ *flight, began bool, _ error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return nil, false, errClosed
	case t.gone:
		return nil, false, errGone
	case t.strict:
		return nil, false, errStrict
	case t.cur.Load().left() > 0: // another caller was here first
		return nil, false, nil
	case len(t.queue) > 0:
		t.install()
		return nil, false, nil
	}
	if t.flight != nil {
		return t.flight, false, nil
	}
	if !t.fetch(n) {
		return nil, false, errClosed
	}
	return t.flight, true, nil
}

// install puts the first range of the queue in the place of the used-up chunk. The next fetch
// is started by the caller that takes the ID after which half of the last fetch is left, in
// this chunk and the queue together.
func (t *Tag) install() {
	r := t.queue[0]
	t.queue = t.queue[1:]
	refill := int64(-1)
	if short := t.last/2 - length(t.queue); short > 0 && t.flight == nil { // else a later chunk does it, or one is under way
		refill = max(r.Len()-short, 0)
	}
	t.cur.Store(newChunk(r, refill))
}

// prefetch starts a fetch in advance. No caller waits for it. The caller may come late:
// when another fetch has brought IDs meanwhile, there is nothing to do.
func (t *Tag) prefetch() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.closed && !t.strict && t.flight == nil && t.cur.Load().left()+length(t.queue) <= t.last/2 {
		t.fetch(0)
	}
}

// fetch starts one fetch, of t.size IDs, or of n if that is more, or of one ID for each caller that
// waits if that is more still. After the source has refused a fetch for its size, the callers that
// wait do not enlarge the next one. It returns false after Close.
func (t *Tag) fetch(n int) bool {
	n = max(n, t.size)
	if !t.cramped {
		n = max(n, int(t.waiting.Load()))
	}
	f := &flight{n: min(n, t.cache.cfg.Max), done: make(chan struct{})}
	if !t.cache.tasks.Start(func() { t.run(f) }) {
		return false
	}
	t.flight = f
	return true
}

// run calls the source.
func (t *Tag) run(f *flight) {
	n := f.n
	rt := t.cache.cfg.Runtime
	ctx, cancel := rt.WithTimeout(t.cache.base, t.cache.cfg.FetchTimeout)
	ranges, strict, err := t.ask(ctx, n)
	late := ctx.Err()
	cancel()
	switch {
	case err != nil && late != nil && leaf.ClassOf(err).Err == nil:
		err = fmt.Errorf("%w: tag %q: fetch %d IDs: %w", leaf.ErrNotReady, t.name, n, err)
	case err == nil && length(ranges) == 0:
		err = fmt.Errorf("%w: tag %q: the source gave none of %d IDs and no error", leaf.ErrNotReady, t.name, n)
	}
	if err != nil {
		t.cache.failures.Add(1)
		t.heed(err)
		t.failed(f, err)
		return
	}
	t.cache.fetches.Add(1)
	t.arrived(f, ranges, strict, rt.Now())
}

// ask calls the source. Its panic is an error of the fetch: the goroutine is not the
// application's, which could not catch it.
func (t *Tag) ask(ctx context.Context, n int) (ranges []leaf.Range, strict bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			ranges, strict, err = nil, false, fmt.Errorf("tag %q: fetch %d IDs: the source panicked: %v\n%s", t.name, n, p, debug.Stack())
		}
	}()
	return t.fromSource(ctx, n)
}

// arrived takes the IDs of a fetch in. Callers of a tag in strict order get none of them: some have
// begun to wait when the fetch was under way.
func (t *Tag) arrived(f *flight, ranges []leaf.Range, strict bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = length(ranges)
	t.cache.fetched.Add(t.last)
	t.flight, t.rest, t.cramped = nil, 0, false
	defer close(f.done)
	t.orderLocked(strict)
	if strict {
		f.err = errStrict
		t.waste(ranges)
		return
	}
	if t.closed || f.doubtful {
		t.waste(ranges)
		return
	}
	if !t.since.IsZero() {
		t.resize(now.Sub(t.since))
	}
	t.since = now
	t.queue = append(t.queue, ranges...)
	if t.cur.Load().left() == 0 {
		t.install()
	}
}

// resize lets the size of the next fetch follow the demand: a fetch comes when half of
// the last chunk is used, so lasted is how long about one fetch's worth lasted.
func (t *Tag) resize(lasted time.Duration) {
	switch span := t.cache.cfg.Span; {
	case lasted < span/2:
		t.size = min(2*t.size, t.cache.cfg.Max)
	case lasted > 2*span:
		t.size = max(t.size/2, t.cache.cfg.Min)
	}
}

// widenLocked makes the next fetch no smaller than the first one, a while after the source had not so many IDs in time. If all
// callers want as many as a small fetch brings, their calls pass the cache by, and no fetch would show that the source has more.
func (t *Tag) widenLocked() {
	if !t.short.IsZero() && t.cache.cfg.Runtime.Now().Sub(t.short) >= t.cache.cfg.Span {
		t.size, t.short = max(t.size, t.cache.cfg.Min), time.Time{}
	}
}

// forFewer says whether the source may allow, or have, fewer IDs, and at no time as many as it was asked for.
func forFewer(err error) bool {
	return errors.Is(err, leaf.ErrBadRequest) || errors.Is(err, leaf.ErrOverflow)
}

// failed ends a fetch that brought nothing. One in advance is tried again after a rest,
// by the next caller; until then what is left is handed out. What a limit refuses, or the source
// does not have, is asked for in smaller parts. A tag that the source does not know is forgotten, so that
// names which clients make up cost no memory.
func (t *Tag) failed(f *flight, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cache.base.Err() != nil {
		err = errClosed
	}
	t.flight, f.err = nil, err
	close(f.done)
	if forFewer(err) || errors.Is(err, leaf.ErrThrottled) || errors.Is(err, leaf.ErrExhausted) {
		t.size, t.cramped = max(min(t.size, f.n/2), 1), true
	}
	if errors.Is(err, leaf.ErrExhausted) {
		t.short = t.cache.cfg.Runtime.Now()
	}
	if t.since.IsZero() && (errors.Is(err, leaf.ErrUnknownTag) || errors.Is(err, leaf.ErrBadRequest) && f.n == 1) {
		t.gone = true
		t.cache.index.drop(t)
		return
	}
	if t.closed || t.cur.Load().left() == 0 {
		return
	}
	t.rest = min(max(2*t.rest, minRest), maxRest)
	rt := t.cache.cfg.Runtime
	rest := rt.Jitter(t.rest)
	t.cache.tasks.Start(func() {
		if rt.Wait(t.cache.base, nil, rest) == nil {
			t.rearm()
		}
	})
}

// rearm makes the next caller start a fetch: what is left of the chunk becomes a chunk of
// its own. A caller that takes from the old chunk meanwhile either takes its ID before rearm
// does, or finds the chunk used up and comes to the lock.
func (t *Tag) rearm() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed || t.flight != nil || len(t.queue) > 0 {
		return
	}
	old := t.cur.Load()
	if r, _ := old.take(old.size); r.Len() > 0 {
		t.cur.Store(newChunk(r, 0))
	}
}

func length(ranges []leaf.Range) (n int64) {
	for _, r := range ranges {
		n += r.Len()
	}
	return n
}
