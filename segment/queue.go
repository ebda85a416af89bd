package segment

import (
	"container/list"
	"context"
	"math/bits"
	"slices"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/bounded"
)

// queue runs the loads of one database: loads of known tags before look-ups of unknown
// ones, each in the order of their line, up to max at a time in goroutines that live only
// while there is work.
//
// A tag whose last load took too long is slow: perhaps a transaction has locked its row. Slow
// tags together hold a quarter of the slots, and three quarters while their loads succeed, so
// other tags find a slot however many rows are locked.
//
// When loads of two different tags in a row find the store unusable (or blocked by
// the cluster fence), the queue takes it for down: one load at a time then probes it, after a back-off, until
// one succeeds. Ten thousand starving tags so cost a dead database four
// connections a second, and none of them spins.
type queue struct {
	rt    leaf.Runtime
	tasks *bounded.Group
	max   int
	quit  <-chan struct{} // closed at shutdown

	// report is called with the reason when the queue begins to consider the store down, and
	// with nil when it no longer does. It is called under mu.
	report func(why error)

	// alone is called when the loads of one tag, and of no other, find the store unusable. No
	// lock is held.
	alone func(t *Tag, why error)

	mu         sync.Mutex
	open       bool // false until the database is bound, and after close
	closed     bool
	known      line // loads of tags that are known; they come before
	unknown    line // look-ups of those that are not
	slow       line // loads of slow tags
	slowNow    int  // those that run
	slowLast   bool // the load that began last is of a slow tag
	slowOK     bool // the load of a slow tag that ended last succeeded
	running    int
	failures   int    // loads in a row, of changing tags, that found the store unusable
	lastFailed string // tag of the last one
	inARow     int    // loads in a row of that tag that found the store unusable
	lates      int    // loads that took too long since one succeeded
	probe      string // tag that was asked for because of them, "" if none
	reported   bool   // the store is considered down, and report was told
	retryAt    time.Time
}

// health is what the end of a load tells about the store.
type health int8

const (
	healthy       health = iota // it answered
	unusable                    // it could not be reached, or failed
	blocked                     // it is not to blame: the cluster fence allows no range
	unknownHealth               // it was not asked
	late                        // one call took too long: it may be one locked row, or all of them
)

const (
	downAfter  = 2 // failures of different tags after which the store counts as down
	aloneAfter = 4 // failures of one tag after which another one is tried
)

// lines returns the lines in which a load can have its place.
func (q *queue) lines() [3]*line { return [...]*line{&q.known, &q.unknown, &q.slow} }

// push queues a load in a line and returns its place there, nil if the queue is closed.
func (q *queue) push(t *Tag, to *line, ahead bool) *list.Element {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return nil
	}
	defer q.startRunners()
	return to.push(t, ahead)
}

// again notes that the load at place, which may have begun, is asked for once more.
func (q *queue) again(place *list.Element, ahead bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.lines() {
		l.again(place, ahead)
	}
}

// drop takes a load out of the line. It returns false if the load has begun, or the
// queue is closed: then it ends elsewhere.
func (q *queue) drop(place *list.Element) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	lines := q.lines()
	return slices.ContainsFunc(lines[:], func(l *line) bool { return l.drop(place) })
}

// left notes that a caller has left the load at place, which stays and may have begun.
func (q *queue) left(place *list.Element) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, l := range q.lines() {
		l.left(place)
	}
}

// resume lets the loads begin.
func (q *queue) resume() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open = !q.closed
	q.startRunners()
}

// close takes no more loads and returns those that have not begun.
func (q *queue) close() (left []*Tag) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open, q.closed = false, true
	for _, l := range q.lines() {
		for t := l.pop(true); t != nil; t = l.pop(true) {
			left = append(left, t)
		}
	}
	return left
}

// startRunners starts a goroutine for every load that may begin, up to the limit. Those
// that run may all be busy, so they do not count; one too many ends at once. q.mu is
// held.
func (q *queue) startRunners() {
	for due := q.others() + q.slowDue(); q.open && due > 0 && q.running < q.limit(); due-- {
		if !q.tasks.Start(q.run) {
			return
		}
		q.running++
	}
}

func (q *queue) limit() int {
	if q.failures >= downAfter {
		return 1
	}
	return q.max
}

func (q *queue) run() {
	for {
		t, slow, pause := q.pop()
		switch {
		case pause > 0:
			_ = q.rt.Wait(context.Background(), q.quit, pause)
		case t == nil:
			return
		default:
			h, err := t.load()
			if q.done(t, slow, h, err) {
				q.alone(t, err)
			}
		}
	}
}

// pop returns the next tag, or how long to wait, or neither if the caller should
// end.
func (q *queue) pop() (t *Tag, slow bool, pause time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	others, slowDue := q.others(), q.slowDue()
	if others+slowDue == 0 || q.running > q.limit() {
		q.running--
		return nil, false, 0
	}
	down := q.failures >= downAfter
	if down {
		if pause = q.retryAt.Sub(q.rt.Now()); pause > 0 {
			return nil, false, pause
		}
	}
	// Slow tags and others take turns, because there may be only one slot.
	if q.slowLast = slowDue > 0 && (others == 0 || !q.slowLast); q.slowLast {
		q.slowNow++
		return q.slow.pop(true), true, 0
	}
	// While the store is down, the oldest load probes it. In LIFO order a tag that always fails
	// would be the newest again after each attempt, and would take every probe.
	if t = q.known.pop(down); t == nil {
		t = q.unknown.pop(down)
	}
	return t, false, 0
}

// others returns how many loads of tags that are not slow have not begun. q.mu is held.
func (q *queue) others() int { return q.known.loads.Len() + q.unknown.loads.Len() }

// slowDue returns how many loads of slow tags may begin. q.mu is held.
func (q *queue) slowDue() int {
	slots := max(1, q.limit()/4)
	if q.slowOK { // perhaps the whole database did hang, and all tags are slow
		slots = max(1, q.limit()-slots)
	}
	return max(0, min(q.slow.loads.Len(), slots-q.slowNow))
}

// done notes the outcome of a load. alone says that it is time to load another tag: when only the
// loads of one tag fail, the database may be well.
func (q *queue) done(t *Tag, slow bool, h health, err error) (alone bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if slow {
		q.slowNow--
		q.slowOK = h == healthy
		defer q.startRunners()
	}
	switch h {
	case healthy:
		q.recovered()
		q.startRunners()
		return false
	case unknownHealth:
		return false
	case late:
		return q.isLate(t, err)
	case unusable, blocked:
	}
	if t.name != q.lastFailed || q.failures >= downAfter {
		q.failures++
	}
	if t.name != q.lastFailed {
		q.inARow = 0
	}
	q.lastFailed = t.name
	q.retryAt = q.rt.Now().Add(bounded.Backoff(q.rt, q.failures))
	if h == blocked {
		return false
	}
	q.inARow++
	if q.failures >= downAfter {
		q.isDown(err)
		return false
	}
	return q.inARow >= aloneAfter && bits.OnesCount(uint(q.inARow)) == 1 // the 4th, 8th, 16th ...
}

// isLate notes a load that took too long. Other loads go on as before: they may be of rows
// that nothing locks. When several in a row are late, another tag is asked, and if that is
// late, too, the store is reported. q.mu is held.
func (q *queue) isLate(t *Tag, why error) (alone bool) {
	q.lates++
	if t.name == q.probe && !q.reported {
		q.reported = true
		q.report(why)
	}
	return !q.reported && q.lates >= aloneAfter && bits.OnesCount(uint(q.lates)) == 1
}

// isDown notes that the store is down, and reports it once. q.mu is held.
func (q *queue) isDown(why error) {
	q.failures = max(q.failures, downAfter)
	if !q.reported {
		q.reported = true
		q.report(why)
	}
}

// rest ends what was known of failures, for a store that can be read and of which no tag needs a load
// any more, such as tags that were deleted, or are issued by another node: no load would end it.
func (q *queue) rest() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running == 0 && q.others()+q.slow.loads.Len() == 0 {
		q.recovered()
	}
}

// recovered forgets all failures. q.mu is held.
func (q *queue) recovered() {
	q.failures, q.lastFailed, q.inARow, q.lates, q.probe = 0, "", 0, 0, ""
	if q.reported {
		q.reported = false
		q.report(nil)
	}
}

// probes notes that the tag is asked for to find out whether loads succeed at all.
func (q *queue) probes(t *Tag) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.probe = t.name
}

// condemn considers the store down although only the loads of one tag have failed. If the loads of
// the tag were late, the tag probes the store itself: when it is late once more, the store is
// reported as down.
func (q *queue) condemn(t *Tag, why error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.lates > 0 && q.lastFailed != t.name { // late, and no other tag to ask
		q.probe = t.name
		return
	}
	if q.lastFailed == t.name { // else a load of another tag has ended meanwhile
		q.isDown(why)
	}
}
