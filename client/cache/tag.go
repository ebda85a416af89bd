package cache

import (
	"context"
	"errors"
	"fmt"
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
	drops   atomic.Int64          // how often drop was called

	mu      sync.Mutex
	queue   []leaf.Range  // what follows cur
	flight  *flight       // the fetch under way; nil: none
	size    int           // of the next fetch
	last    int64         // IDs that the last fetch brought
	since   time.Time     // when it came; zero: none did
	rest    time.Duration // after the last failure; 0 since a fetch brought IDs
	cramped bool          // the last fetch was refused: the next one is smaller
	short   time.Time     // when the source last had not so many in time; zero: a fetch may have its usual size
	gone    bool          // no longer in the index, and never to hold an ID
	closed  bool
	strict  bool // the last answer said so: calls go to the source
}

// errGone: the tag was forgotten, and another one may stand for its name now.
var errGone = errors.New("cache: the tag was forgotten")

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
	if errors.Is(err, errStrict) {
		ranges, err := t.pass(ctx, 1)
		if err != nil {
			return 0, err
		}
		return ranges[0].Lo, nil
	}
	return r.Lo, err
}

// NextN is Cache.NextN for this tag.
//
// Ranges of the source need not grow from one fetch to the next, but those of one reply
// must. Where they would not, what was taken of the earlier fetch is wasted. So is what a call has and the cache has
// dropped meanwhile.
func (t *Tag) NextN(ctx context.Context, n int) ([]leaf.Range, error) {
	if n < 1 || n > leaf.MaxBatch {
		return nil, badCount(n)
	}
	if t.passes(n) {
		return t.pass(ctx, n)
	}
	var out []leaf.Range
	var drops int64 // before the first of out was taken
	for need := int64(n); need > 0; {
		before := t.drops.Load()
		r, due := t.cur.Load().take(need)
		if due {
			t.prefetch()
		}
		if r.Len() == 0 {
			var err error
			if r, err = t.wait(ctx, need); err != nil {
				t.waste(out)
				if errors.Is(err, errStrict) {
					return t.pass(ctx, n)
				}
				return nil, err
			}
		}
		if len(out) > 0 && (r.Lo < out[len(out)-1].Hi || t.drops.Load() != drops) {
			t.waste(out)
			out, need = nil, int64(n)
		}
		if out == nil {
			drops = before
		}
		out = leaf.AppendRange(out, r)
		need -= r.Len()
	}
	return out, nil
}

// passes reports whether a call for n IDs goes to the source: the tag is in strict order, or the
// call needs as many as a fetch would bring, so the cache would only pass them on.
func (t *Tag) passes(n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return (t.strict || n >= t.size) && !t.closed
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
			if forFewer(f.err) && int64(f.n) > n {
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

// close takes everything that is left.
func (t *Tag) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.drop()
}

// heed drops what is in memory, and what the fetch under way brings, if err says that the
// source's store went backwards: it may have given these IDs twice. Nodes drop their ranges
// for the same reason.
func (t *Tag) heed(err error) {
	if !errors.Is(err, leaf.ErrRegress) {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.flight != nil {
		t.flight.doubtful = true
	}
	t.drop()
}

// drop takes all IDs in memory. The caller holds mu.
func (t *Tag) drop() {
	cur := t.cur.Load()
	r, _ := cur.take(cur.size)
	t.waste(append(t.queue, r))
	t.queue = nil
	t.drops.Add(1)
}

// held returns how many IDs in memory were not taken.
func (t *Tag) held() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.cur.Load().left() + length(t.queue)
}
