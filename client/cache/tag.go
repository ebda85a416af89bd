package cache

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
)

// How long a tag rests after a fetch in advance has failed.
const (
	minRest = 100 * time.Millisecond
	maxRest = 2 * time.Second
)

// Tag is the buffer of one tag. All methods are safe for concurrent use.
//
// The lock guards everything but the chunk being handed out. It is never held over a
// call of the source.
type Tag struct {
	name    string
	cache   *Cache
	cur     atomic.Pointer[chunk] // never nil
	waiting atomic.Int64          // callers in wait, also those that a fetch has just woken

	mu      sync.Mutex
	queue   []leaf.Range  // what follows cur
	flight  *flight       // the fetch under way; nil: none
	size    int           // of the next fetch
	last    int64         // IDs that the last fetch brought
	since   time.Time     // when it came; zero: none did
	rest    time.Duration // after the last failure; 0 since a fetch brought IDs
	cramped bool          // the last fetch was refused: the next one is smaller
	gone    bool          // no longer in the index, and never to hold an ID
	closed  bool
}

// errGone: the tag was forgotten, and another one may stand for its name now.
var errGone = errors.New("cache: the tag was forgotten")

// flight is one fetch, and the callers that wait for it.
type flight struct {
	n    int // IDs asked for
	done chan struct{}
	err  error // valid once done is closed
}

func newTag(c *Cache, name string) *Tag {
	t := &Tag{name: name, cache: c, size: c.cfg.Min}
	t.cur.Store(&chunk{refill: -1})
	return t
}

// Next is Cache.Next for this tag.
func (t *Tag) Next(ctx context.Context) (int64, error) {
	r, due := t.cur.Load().take(1)
	if r.Lo < r.Hi {
		if due {
			t.prefetch()
		}
		return r.Lo, nil
	}
	r, err := t.wait(ctx, 1)
	return r.Lo, err
}

// NextN is Cache.NextN for this tag.
//
// Ranges of the source need not grow from one fetch to the next, but those of one reply
// must. Where they would not, what was taken of the earlier fetch is wasted.
func (t *Tag) NextN(ctx context.Context, n int) ([]leaf.Range, error) {
	if n < 1 || n > leaf.MaxBatch {
		return nil, badCount(n)
	}
	if t.passes(n) {
		return t.cache.source.NextN(ctx, t.name, n)
	}
	var out []leaf.Range
	for need := int64(n); need > 0; {
		r, due := t.cur.Load().take(need)
		if due {
			t.prefetch()
		}
		if r.Len() == 0 {
			var err error
			if r, err = t.wait(ctx, need); err != nil {
				t.waste(out)
				return nil, err
			}
		}
		if len(out) > 0 && r.Lo < out[len(out)-1].Hi {
			t.waste(out)
			out, need = nil, int64(n)
		}
		out = leaf.AppendRange(out, r)
		need -= r.Len()
	}
	return out, nil
}

// passes reports whether a call for n IDs goes to the source: it needs as many as a
// fetch would bring, so the cache would only pass them on.
func (t *Tag) passes(n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return n >= t.size && !t.closed
}

func badCount(n int) error {
	return leaf.BadField("count", n, fmt.Sprintf("must be 1 to %d", leaf.MaxBatch))
}

// waste counts IDs that were taken and that no caller gets.
func (t *Tag) waste(ranges []leaf.Range) {
	t.cache.unused.Add(length(ranges))
}

// wait returns up to n IDs once there are any.
//
// A caller that finds the chunk used up comes here. The first caller puts the next range of
// the queue in the place of the chunk, or starts a fetch. The others find the new chunk, or
// wait for the same fetch. A fetch that ends without IDs gives its error to all callers that
// waited for it: retries are the source's business. Two kinds of callers ask again. A caller
// that wants fewer IDs than the fetch asked for asks for fewer, when the source can never give
// as many at once. And a caller that came when the fetch had begun asks once more when the
// time of the fetch was up, because the caller has more time than the fetch had left.
func (t *Tag) wait(ctx context.Context, n int64) (leaf.Range, error) {
	t.waiting.Add(1)
	defer t.waiting.Add(-1)
	for again := true; ; {
		f, began, err := t.turn(int(n))
		if errors.Is(err, errGone) {
			id, err := t.cache.Next(ctx, t.name) // of the tag that is there now
			return leaf.Range{Lo: id, Hi: id + 1}, err
		}
		if err != nil {
			return leaf.Range{}, err
		}
		if f != nil {
			err := t.cache.cfg.Runtime.Wait(ctx, f.done, 0)
			if errors.Is(err, context.Canceled) {
				return leaf.Range{}, fmt.Errorf("tag %q: the caller has cancelled the call: %w", t.name, err)
			}
			if err != nil {
				return leaf.Range{}, fmt.Errorf("%w: tag %q: the next range did not arrive in time: %w", leaf.ErrExhausted, t.name, err)
			}
			if errors.Is(f.err, leaf.ErrBadRequest) && int64(f.n) > n {
				continue
			}
			if again && !began && (errors.Is(f.err, leaf.ErrNotReady) || errors.Is(f.err, leaf.ErrExhausted)) {
				again = false
				continue
			}
			if f.err != nil {
				return leaf.Range{}, f.err
			}
		}
		r, due := t.cur.Load().take(n)
		if due {
			t.prefetch()
		}
		if r.Len() > 0 {
			return r, nil
		}
	}
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
	if !t.closed && t.flight == nil && t.cur.Load().left()+length(t.queue) <= t.last/2 {
		t.fetch(0)
	}
}

// fetch starts a fetch of t.size IDs, at least n, and one for each caller that waits
// unless the source has just refused as many. It returns false after Close.
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
	ranges, err := t.ask(ctx, n)
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
		t.failed(f, err)
		return
	}
	t.cache.fetches.Add(1)
	t.arrived(f, ranges, rt.Now())
}

// ask calls the source. Its panic is an error of the fetch: the goroutine is not the
// application's, which could not catch it.
func (t *Tag) ask(ctx context.Context, n int) (ranges []leaf.Range, err error) {
	defer func() {
		if p := recover(); p != nil {
			ranges, err = nil, fmt.Errorf("tag %q: fetch %d IDs: the source panicked: %v\n%s", t.name, n, p, debug.Stack())
		}
	}()
	return t.cache.source.NextN(ctx, t.name, n)
}

// arrived takes the IDs of a fetch in.
func (t *Tag) arrived(f *flight, ranges []leaf.Range, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = length(ranges)
	t.cache.fetched.Add(t.last)
	t.flight, t.rest, t.cramped = nil, 0, false
	defer close(f.done)
	if t.closed {
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

// failed ends a fetch that brought nothing. One in advance is tried again after a rest,
// by the next caller; until then what is left is handed out. What a limit refuses is
// asked for in smaller parts. A tag that the source does not know is forgotten, so that
// names which clients make up cost no memory.
func (t *Tag) failed(f *flight, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cache.base.Err() != nil {
		err = errClosed
	}
	t.flight, f.err = nil, err
	close(f.done)
	bad := errors.Is(err, leaf.ErrBadRequest)
	if bad || errors.Is(err, leaf.ErrThrottled) {
		t.size, t.cramped = max(min(t.size, f.n/2), 1), true
	}
	if t.since.IsZero() && (errors.Is(err, leaf.ErrUnknownTag) || bad && f.n == 1) {
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

// close takes everything that is left.
func (t *Tag) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	cur := t.cur.Load()
	r, _ := cur.take(cur.size)
	t.waste(append(t.queue, r))
	t.queue = nil
}

// held returns how many IDs in memory were not taken.
func (t *Tag) held() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cur.Load().left() + length(t.queue)
}

func length(ranges []leaf.Range) (n int64) {
	for _, r := range ranges {
		n += r.Len()
	}
	return n
}
