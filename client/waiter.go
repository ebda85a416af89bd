package client

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/answers"
)

// waiter is a caller in a lane. One compare-and-set of its state decides: a flight serves
// the waiter, or the waiter leaves. When it has left, the outcome that a flight wrote is
// never read.
type waiter struct {
	n       int
	expires time.Time     // guarded by the lane's mutex until a flight has it; zero: see lane.stamp
	wake    chan struct{} // gets one value when the waiter is served
	state   atomic.Int32

	batch *batch // guarded by the lane's mutex; nil: not in a flight

	// The outcome, written before the state says served.
	ranges []leaf.Range // of NextN
	id     int64        // of Next, which allocates nothing: n is 0 then
	strict bool         // the tag is in strict order, as the answer says
	err    error
	next   *waiter // served too, and woken by this one; nil: the chain's last
}

// chainLength bounds how many waiters wake one another, each the next. The flight wakes
// only the first of them. A waiter that was woken runs next on the same core, so a chain is
// cheaper than to wake all waiters, which would queue before the flight and its node
// (BenchmarkClientNext). The bound keeps one slow thread from holding up many waiters.
const chainLength = 32

const (
	waiting int32 = iota
	served
	left
)

// size is how many IDs the waiter wants.
func (w *waiter) size() int { return max(w.n, 1) }

// give writes the first of ranges down as the outcome, as many IDs as are wanted, and
// returns the others.
func (w *waiter) give(ranges []leaf.Range) []leaf.Range {
	w.err = nil
	if w.n > 0 {
		w.ranges, ranges = answers.Cut(ranges, w.n)
		return ranges
	}
	w.id = ranges[0].Lo
	if ranges[0].Lo++; ranges[0].Len() == 0 {
		return ranges[1:]
	}
	return ranges
}

// claim decides that the waiter is served, and returns false if it has left meanwhile.
// It must be woken then, by wakeUp or by another one's pass.
func (w *waiter) claim() bool { return w.state.CompareAndSwap(waiting, served) }

func (w *waiter) wakeUp() { w.wake <- struct{}{} }

// pass wakes the next one of the chain. Every waiter that was served calls it as soon as
// it wakes, and it does wake: a served one waits for that whatever its context says.
//
// What a flight wrote is seen by all: it sets next before it wakes the first, and each
// reads its own after it was woken by the one before.
func (w *waiter) pass() {
	if n := w.next; n != nil {
		w.next = nil
		n.wakeUp()
	}
}

// fail serves the waiter an error, unless it has left.
func (w *waiter) fail(err error) {
	w.err = err
	if w.claim() {
		w.wakeUp()
	}
}

// waiters keeps those of calls that have ended.
type waiters struct{ pool sync.Pool }

// get returns a waiter for n IDs; 0: one, as an ID and not as a range.
func (p *waiters) get(n int, expires time.Time) *waiter {
	w, ok := p.pool.Get().(*waiter)
	if !ok {
		w = &waiter{wake: make(chan struct{}, 1)}
	}
	w.n, w.expires = n, expires
	w.state.Store(waiting)
	return w
}

// put is called by the caller itself after it got IDs, and in no other case: a list
// may still hold a waiter that left or failed.
func (p *waiters) put(w *waiter) {
	w.batch, w.ranges = nil, nil
	p.pool.Put(w)
}
