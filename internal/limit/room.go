package limit

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
)

// room is the waiting room of one mode: it bounds how many requests wait at once.
//
// The bound follows from Little's law: with rate x target requests in the room, where rate
// is how many of them are served per second, the mean wait is the target. The room looks
// at what left it in the last tenth of a second, or longer, if few did. If they waited for
// longer than the target, or most of them in vain, or so many wait now that the last of
// them will wait for twice the target, the bound becomes rate x target. If not, and
// requests were rejected meanwhile, it grows towards that by a half. It begins as large
// as it may get. Windows in which no request leaves are ignored: a short stall of the store must
// not shrink the bound.
//
// One tag gets at most half of it, so that a tag whose row is locked does not keep others
// from their first range. Snowflake mode has one tag only, so the whole room
// is for that tag.
type room struct {
	rt       leaf.Runtime
	target   time.Duration
	min, max int
	perTag   bool // there are tags

	crowded atomic.Bool // a request may be rejected

	mu      sync.Mutex
	limit   int
	waiting int
	most    int // waiting at once, ever
	byTag   map[string]int
	shed    int64
	window  window
}

// window is what left the room since start.
type window struct {
	start  time.Time
	last   time.Time // when the last one left
	left   int
	served int
	waited time.Duration
	shed   int
}

const (
	shortWindow = 100 * time.Millisecond // and fewLeft, or longWindow
	longWindow  = time.Second
	fewLeft     = 16
)

func newRoom(c Config, perTag bool) *room {
	return &room{
		perTag: perTag,
		rt:     c.Runtime, target: c.TargetWait, min: c.MinWaiting, max: c.MaxWaiting, limit: c.MaxWaiting,
		byTag: make(map[string]int), window: window{start: c.Runtime.Now()},
	}
}

// enter reports whether the request may wait. It is then to be followed by leave.
func (r *room) enter(tag string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.look()
	r.adapt(now)
	if r.full(tag) {
		r.shed++
		r.window.shed++
		return false
	}
	r.waiting++
	r.byTag[tag]++
	r.most = max(r.most, r.waiting)
	return true
}

// full reports whether no further request may wait for the tag. The caller holds mu.
func (r *room) full(tag string) bool {
	return r.waiting >= r.limit || r.perTag && r.byTag[tag] >= r.half()
}

func (r *room) half() int { return (r.limit + 1) / 2 }

// look sets crowded. mu is held.
func (r *room) look() {
	if now := r.waiting >= r.half(); now != r.crowded.Load() {
		r.crowded.Store(now)
	}
}

// turns reports whether a batch is to be turned away before it begins: others wait for
// its tag, and it could not. Without this, it would take what arrives for them, and lose
// it when it is turned away in the middle.
func (r *room) turns(tag string) bool {
	if !r.crowded.Load() {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.look()
	r.adapt(r.rt.Now())
	if r.byTag[tag] == 0 || !r.full(tag) {
		return false
	}
	r.shed++
	r.window.shed++
	return true
}

// refusal is the answer for a request that was turned away. No administrator set a limit:
// the node cannot serve, and another one may.
func (r *room) refusal() error {
	return leaf.Later(leaf.ErrExhausted, "too many requests wait for IDs", roundUp(r.rt.Jitter(r.target)))
}

// leave notes that a request, in the room since then, ended with err.
func (r *room) leave(tag string, since time.Time, err error) {
	now := r.rt.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.look()
	r.waiting--
	if r.byTag[tag]--; r.byTag[tag] == 0 {
		delete(r.byTag, tag)
	}
	r.adapt(now) // a silence that ends now is not part of the window
	r.window.left++
	r.window.last = now
	r.window.waited += now.Sub(since)
	if err == nil || errors.Is(err, leaf.ErrUnknownTag) { // the store answered
		r.window.served++
	}
	r.adapt(now)
}

// adapt begins a new window if it is time, and sets the limit by what left in the old
// one. mu is held.
func (r *room) adapt(now time.Time) {
	w := r.window
	length := now.Sub(w.start)
	switch {
	case length < shortWindow:
		return
	case w.left == 0: // a store that is silent may come back any moment
		r.window = window{start: now}
		return
	case w.left < fewLeft && length < longWindow:
		return
	}
	r.window = window{start: now}
	busy := max(w.last.Sub(w.start), time.Millisecond)
	perTarget := float64(w.served) * float64(r.target) / float64(busy)
	switch {
	case w.waited > time.Duration(w.left)*r.target, 2*w.served < w.left, float64(r.waiting) > 2*perTarget:
		r.limit = min(r.limit, max(r.min, int(perTarget)))
	case w.shed > 0:
		r.limit = min(r.max, max(r.limit, min(int(perTarget), r.limit+r.limit/2+1)))
	}
}
