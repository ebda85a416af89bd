package segment

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf"
)

// queue runs the loads of one database: first come, first served, loads of known
// tags before look-ups of unknown ones, up to max at a time in goroutines that
// live only while there is work.
//
// When loads of two different tags in a row find the store unusable (or blocked by
// the cluster fence), the queue takes it for down: one load at a time then probes it, after a back-off, until
// one succeeds. Ten thousand starving tags so cost a dead database four
// connections a second, and none of them spins.
type queue struct {
	rt    leaf.Runtime
	tasks *group
	max   int
	quit  chan struct{} // closed at shutdown

	// report is told when the queue begins or ceases to take the store for down. It is
	// called under mu.
	report func(down bool)

	mu         sync.Mutex
	open       bool // false until the database is bound, and after close
	closed     bool
	known      []*Tag
	unknown    []*Tag
	running    int
	failures   int    // loads in a row, of changing tags, that found the store unusable
	lastFailed string // tag of the last one
	reported   bool   // that it takes the store for down
	retryAt    time.Time
}

// health is what the end of a load tells about the store.
type health int8

const (
	healthy       health = iota // it answered
	unusable                    // it could not be reached, or failed
	blocked                     // it is not to blame: the cluster fence allows no range
	unknownHealth               // it was not asked, or one call took too long
)

const downAfter = 2 // failures after which the store counts as down

// push queues a load and reports whether the queue took it.
func (q *queue) push(t *Tag, unknown bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	if unknown {
		q.unknown = append(q.unknown, t)
	} else {
		q.known = append(q.known, t)
	}
	q.startRunners()
	return true
}

// resume lets the loads begin.
func (q *queue) resume() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.open = !q.closed
	q.startRunners()
}

// close takes no more loads and returns those that have not begun.
func (q *queue) close() []*Tag {
	q.mu.Lock()
	defer q.mu.Unlock()
	left := slices.Concat(q.known, q.unknown)
	q.known, q.unknown, q.open, q.closed = nil, nil, false, true
	return left
}

// startRunners starts a goroutine for every queued load, up to the limit. Those
// that run may all be busy, so they do not count; one too many ends at once. q.mu is
// held.
func (q *queue) startRunners() {
	for queued := len(q.known) + len(q.unknown); q.open && queued > 0 && q.running < q.limit(); queued-- {
		if !q.tasks.start(q.run) {
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
		t, pause := q.pop()
		switch {
		case pause > 0:
			_ = q.rt.Wait(context.Background(), q.quit, pause)
		case t == nil:
			return
		default:
			q.done(t, t.load())
		}
	}
}

// pop returns the next tag, or how long to wait, or neither if the caller should
// end.
func (q *queue) pop() (t *Tag, pause time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.known)+len(q.unknown) == 0 || q.running > q.limit() {
		q.running--
		return nil, 0
	}
	if q.failures >= downAfter {
		if pause = q.retryAt.Sub(q.rt.Now()); pause > 0 {
			return nil, pause
		}
	}
	from := &q.known
	if len(q.known) == 0 {
		from = &q.unknown
	}
	t, (*from)[0] = (*from)[0], nil
	*from = (*from)[1:]
	return t, 0
}

// done notes the outcome of a load.
func (q *queue) done(t *Tag, h health) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch h {
	case healthy:
		q.failures, q.lastFailed = 0, ""
		if q.reported {
			q.reported = false
			q.report(false)
		}
		q.startRunners()
		return
	case unknownHealth:
		return
	case unusable, blocked:
	}
	// One tag that fails over and over says nothing about the database.
	if t.name != q.lastFailed || q.failures >= downAfter {
		q.failures++
	}
	q.lastFailed = t.name
	q.retryAt = q.rt.Now().Add(backoff(q.rt, q.failures))
	if h == unusable && q.failures >= downAfter && !q.reported {
		q.reported = true
		q.report(true)
	}
}
