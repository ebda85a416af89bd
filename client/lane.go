package client

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/leafpb"
)

// maxFlights bounds the batches of one lane that are on their way at the same time. More
// than one is only if the others are slow.
const maxFlights = 8

// lane is where the callers of one tag and mode meet. A caller that finds no flight under
// way starts one at once. A caller that comes while a flight is under way waits, and leaves
// with the next one. So the size of the batches follows the load.
type lane struct {
	client  *Client
	mode    leafpb.Mode
	tag     string
	rt      leaf.Runtime
	timeout time.Duration // of callers without a deadline
	share   share         // of the budget, which guards it

	routing              // of the tag
	sections []routing   // of a sequence; nil: the lane is of a tag
	strict   atomic.Bool // the tag is in strict order, as the last answer with IDs said

	mu      sync.Mutex
	waiting []*waiter // in order of arrival; not empty: a flight is under way
	spare   []*waiter // the memory of an earlier batch
	flights int       // goroutines in fly
	slow    int       // of these, how many have waited so long that no caller should wait for them
	limit   int       // of IDs in a batch: less than leaf.MaxBatch after a node had fewer or allowed fewer
	scarce  time.Time // until then the IDs of the nodes are taken for too few
	refusal refusal   // the last "throttled", unless IDs have come since
	shunned map[*node]shun
	used    bool // since retire looked last
	retired bool // no longer in the map of lanes
}

// refusal is the last answer of a node that throttled a request.
type refusal struct {
	err      error
	size     int       // how many IDs were refused
	until    time.Time // before then a retry is in vain
	believed time.Time // until then a caller that wants as many and cannot wait until then is refused unasked
}

// belief bounds how long callers are refused by an earlier answer of the node, without asking it:
// limits change.
const belief = 100 * time.Millisecond

// scarceTime is how long IDs are taken for scarce after a node had too few for a batch. Batches grow to that size again in less.
const scarceTime = 10 * time.Second

// join puts w into the lane. start: the caller must start a flight. retired: the lane is
// not in use any more.
func (l *lane) join(w *waiter) (start, retired bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.retired {
		return false, true, nil
	}
	l.used = true
	if r := &l.refusal; r.err != nil {
		if now := l.rt.Now(); now.Before(r.believed) && l.refuses(w, now) {
			return false, false, r.err
		}
	}
	l.waiting = append(l.waiting, w)
	return l.startLocked(), false, nil
}

// use keeps the lane from being retired soon.
func (l *lane) use() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.used = true
}

// start is startLocked.
func (l *lane) start() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.startLocked()
}

// startLocked reports whether one more flight must start, and counts it.
func (l *lane) startLocked() bool {
	if len(l.waiting) == 0 || l.flights > l.slow || l.flights == maxFlights {
		return false
	}
	l.flights++
	return true
}

// stamp sets when the time of a caller without a deadline is up. Callers leave that to
// the first flight that sees them: a look at the clock is a good part of what a call
// costs, and flights look at it for all.
func (l *lane) stamp(w *waiter, now time.Time) {
	if w.expires.IsZero() {
		w.expires = now.Add(l.timeout)
	}
}

// leave takes w out of the lane, whose caller gives up. It returns false if w was served
// meanwhile; said is what the nodes said so far.
func (l *lane) leave(w *waiter) (ok bool, said error) {
	if !w.state.CompareAndSwap(waiting, left) {
		return false, nil
	}
	l.mu.Lock()
	b := w.batch
	if b == nil {
		if i := slices.Index(l.waiting, w); i >= 0 {
			l.waiting = slices.Delete(l.waiting, i, i+1)
		}
		said = l.refusal.err
	} else {
		said = b.said
	}
	l.mu.Unlock()
	if b != nil {
		b.signal()
	}
	return true, said
}

// depart returns the next batch, in order of arrival, nil if the flight must end.
func (l *lane) depart() *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.flights-l.slow > 1 || len(l.waiting) == 0 {
		l.flights-- // another flight takes the waiting callers, or no caller waits
		return nil
	}
	b := &batch{lane: l, waiters: l.spare[:0], wake: make(chan struct{}, 1)}
	l.spare = nil
	next, now := 0, l.rt.Now()
	for ; next < len(l.waiting); next++ {
		w := l.waiting[next]
		if w.state.Load() != waiting {
			continue
		}
		if b.count > 0 && b.count+w.size() > l.limit {
			break
		}
		l.stamp(w, now)
		w.batch = b
		b.count += w.size()
		b.waiters = append(b.waiters, w)
	}
	if b.count == 0 { // all have left
		l.waiting = l.waiting[:0]
		l.flights--
		return nil
	}
	if next == len(l.waiting) && next == len(b.waiters) {
		// The usual case: the two slices change places.
		b.waiters, l.waiting = l.waiting, b.waiters[:0]
	} else {
		l.waiting = slices.Delete(l.waiting, 0, next)
	}
	return b
}

// ended notes that a flight's batch has ended, with IDs of a node or, if that is nil,
// without, and reports whether others wait for a flight.
func (l *lane) ended(from *node, slow bool) (others bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if slow {
		l.slow--
	}
	if from != nil {
		delete(l.shunned, from)
		l.limit = min(l.limit+l.limit/8+1, leaf.MaxBatch)
		l.refusal = refusal{}
	}
	return len(l.waiting) > 0
}

// recycle takes the memory of a batch that was handed out.
func (l *lane) recycle(waiters []*waiter) {
	clear(waiters)
	l.mu.Lock()
	defer l.mu.Unlock()
	if cap(waiters) > cap(l.spare) {
		l.spare = waiters[:0]
	}
}

// lack notes that a node had fewer IDs than a batch wanted.
func (l *lane) lack(now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.scarce = now.Add(scarceTime)
}

// lacks reports whether a node had fewer IDs than a batch wanted, lately.
func (l *lane) lacks(now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return now.Before(l.scarce)
}

// slowed counts a flight as slow and reports whether another one must start.
func (l *lane) slowed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slow++
	return l.startLocked()
}

// expire fails the callers that wait for a flight and whose time is up, and returns when the
// time of the next one is up; zero: no caller waits.
func (l *lane) expire(now time.Time, said error) (next time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = slices.DeleteFunc(l.waiting, func(w *waiter) bool {
		l.stamp(w, now)
		if w.expires.After(now) {
			if next.IsZero() || w.expires.Before(next) {
				next = w.expires
			}
			return false
		}
		w.fail(late(said, nil))
		return true
	})
	return next
}

// shrink makes b smaller by a factor after a node refused it for its size: the node may have, or allow,
// what one caller wants, and not what all of them want together. The callers that came last
// go back to the lane's head. It returns false if b has one caller only.
func (l *lane) shrink(b *batch, by int) bool {
	if len(b.waiters) < 2 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	keep, count := 0, 0
	for keep < len(b.waiters)-1 && (keep == 0 || count+b.waiters[keep].size() <= b.count/by) {
		count += b.waiters[keep].size()
		keep++
	}
	back := slices.Clone(b.waiters[keep:])
	for _, w := range back {
		w.batch = nil
	}
	clear(b.waiters[keep:])
	b.waiters, b.count = b.waiters[:keep], count
	l.waiting = append(back, l.waiting...)
	l.limit = max(1, count)
	return true
}

// refused fails the callers that wait for a flight, want at least as many IDs as were
// refused just now, and cannot wait until a retry may succeed.
func (l *lane) refused(now, until time.Time, size int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refusal = refusal{err, size, until, now.Add(min(until.Sub(now), belief))}
	l.waiting = slices.DeleteFunc(l.waiting, func(w *waiter) bool {
		if !l.refuses(w, now) {
			return false
		}
		w.fail(err)
		return true
	})
}

// refuses reports whether the refusal holds for w, too.
func (l *lane) refuses(w *waiter, now time.Time) bool {
	l.stamp(w, now)
	return w.size() >= l.refusal.size && w.expires.Before(l.refusal.until)
}

// abort fails all waiting callers: a flight was counted and could not start.
func (l *lane) abort(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.flights--
	for _, w := range l.waiting {
		w.fail(err)
	}
	l.waiting = nil
}

// retire takes the lane out of use if no call has used it since the last retire, and
// reports whether it did.
func (l *lane) retire() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retired = !l.used && l.flights == 0
	l.used = false
	return l.retired
}

// begin is the first part of a flight, by the caller that starts it; the rest, if there is
// any, follows in a goroutine. Other callers that wait for a flight are part of the rest.
func (l *lane) begin(ctx context.Context) {
	c := l.client
	b := l.depart()
	if b == nil {
		c.flights.End()
		return
	}
	f := flight{client: c, lane: l, batch: b}
	ended := f.try(ctx)
	if ended && !l.more() {
		c.flights.End()
		return
	}
	rest := f
	c.rt.Go(func() {
		defer c.flights.End()
		if !ended {
			rest.run(c.root)
		}
		l.fly(c.root, c)
	})
}

// more reports whether a flight whose batch has ended goes on with another one, and
// counts it as ended if not.
func (l *lane) more() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.flights-l.slow > 1 || len(l.waiting) == 0 {
		l.flights--
		return false
	}
	return true
}

// fly takes one batch after the other to the nodes until no caller waits.
func (l *lane) fly(ctx context.Context, c *Client) {
	for b := l.depart(); b != nil; b = l.depart() {
		f := flight{client: c, lane: l, batch: b}
		f.start()
		f.run(ctx)
	}
}
