package limit

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
)

// adaptive is the concurrency limit of one mode, or of one database: it bounds how many
// requests wait at once. A request that waits holds a slot.
//
// The limit follows from Little's law: with rate x target requests in slots, where rate is
// how many of them are served per second, the mean wait is the target. adaptive looks at the
// slots that were released in the last tenth of a second, or longer, if few were. If their
// requests waited for longer than the target, or most of them in vain, or so many wait now
// that the last of them will wait for twice the target, the limit becomes rate x target. If
// not, and requests were rejected meanwhile, it grows towards that by a half. It begins as
// large as it may get, and does so again when neither was the case for the time of calm: what
// an overload has shown of the store may be long past. Windows in which no slot is released
// are ignored: a short stall of the store must not shrink the limit.
//
// One tag gets at most half of the slots, so that a tag whose row is locked does not keep
// others from their first range. Snowflake mode has one tag only, which may have them all.
type adaptive struct {
	rt     leaf.Runtime
	perTag bool         // there are tags
	target atomic.Int64 // nanoseconds; set under mu

	crowded atomic.Bool // a request may be rejected

	mu       sync.Mutex
	min, max int
	limit    int
	waiting  int
	most     int // waiting at once, ever
	byTag    map[string]int
	rejected int64
	trouble  time.Time // the last one: a request was rejected, or a window was overloaded
	window   window
}

// window is what became of the slots that were released since start.
type window struct {
	start    time.Time
	last     time.Time // when the last one left
	left     int
	served   int
	waited   time.Duration
	rejected int
}

// leastWaiting requests may always wait: they keep the store busy.
const leastWaiting = 16

const (
	shortWindow = 100 * time.Millisecond // and fewLeft, or longWindow
	longWindow  = time.Second
	fewLeft     = 16
	calm        = 5 * time.Second
)

func newAdaptive(c Config, perTag bool) *adaptive {
	a := &adaptive{perTag: perTag, rt: c.Runtime, byTag: make(map[string]int), window: window{start: c.Runtime.Now()}}
	a.set(c.TargetWait, c.MaxWaiting)
	return a
}

// set replaces the bounds. The limit begins again as large as it may get. Requests that hold a
// slot keep it.
func (a *adaptive) set(target time.Duration, most int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.look()
	a.target.Store(int64(target))
	a.min, a.max, a.limit = min(leastWaiting, most), most, most
}

// acquire reports whether the request may wait for its IDs. If so, it holds a slot until
// release.
func (a *adaptive) acquire(tag string, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.look()
	a.adapt(now)
	if a.full(tag) {
		a.reject(now)
		return false
	}
	a.waiting++
	a.byTag[tag]++
	a.most = max(a.most, a.waiting)
	return true
}

// full reports whether no further request may wait for the tag. The caller holds mu.
func (a *adaptive) full(tag string) bool {
	return a.waiting >= a.limit || a.perTag && a.byTag[tag] >= a.half()
}

func (a *adaptive) half() int { return (a.limit + 1) / 2 }

// look sets crowded. mu is held.
func (a *adaptive) look() {
	if now := a.waiting >= a.half(); now != a.crowded.Load() {
		a.crowded.Store(now)
	}
}

// turns reports whether a batch must be rejected before it begins: other requests wait for its tag,
// and the batch would get no slot to wait in. If it began, it would take IDs that arrive for the
// other requests, and lose them when it is rejected in the middle.
func (a *adaptive) turns(tag string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.look()
	now := a.rt.Now()
	a.adapt(now)
	if a.byTag[tag] == 0 || !a.full(tag) {
		return false
	}
	a.reject(now)
	return true
}

// reject counts a request that is rejected. mu is held.
func (a *adaptive) reject(now time.Time) {
	a.rejected++
	a.window.rejected++
	a.trouble = now
}

// refusal is the answer for a request that was rejected. No administrator set a limit:
// the node cannot serve, and another one may.
func (a *adaptive) refusal() error {
	return leaf.Later(leaf.ErrExhausted, "too many requests wait for IDs", roundUp(a.rt.Jitter(time.Duration(a.target.Load()))))
}

// release notes that a request, in its slot since then, ended with err.
func (a *adaptive) release(tag string, since time.Time, err error) {
	now := a.rt.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.look()
	a.waiting--
	if a.byTag[tag]--; a.byTag[tag] == 0 {
		delete(a.byTag, tag)
	}
	a.adapt(now) // a silence that ends now is not part of the window
	a.window.left++
	a.window.last = now
	a.window.waited += now.Sub(since)
	if err == nil || errors.Is(err, leaf.ErrUnknownTag) { // the store answered
		a.window.served++
	}
	a.adapt(now)
}

// adapt begins a new window if it is time, and sets the limit by what left in the old
// one. mu is held.
func (a *adaptive) adapt(now time.Time) {
	w := a.window
	length := now.Sub(w.start)
	if length < shortWindow || 0 < w.left && w.left < fewLeft && length < longWindow {
		return
	}
	a.window = window{start: now}
	busy := max(w.last.Sub(w.start), time.Millisecond)
	perTarget := float64(w.served) * float64(a.target.Load()) / float64(busy)
	switch {
	case w.left == 0: // a store that is silent may come back any moment
	case w.waited > time.Duration(int64(w.left)*a.target.Load()), 2*w.served < w.left, float64(a.waiting) > 2*perTarget:
		a.limit = min(a.limit, max(a.min, int(perTarget)))
		a.trouble = w.last
	case w.rejected > 0:
		a.limit = min(a.max, max(a.limit, min(int(perTarget), a.limit+a.limit/2+1)))
	}
	if now.Sub(a.trouble) >= calm {
		a.limit = a.max
	}
}
