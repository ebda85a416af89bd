package client

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
)

// waiter is a caller in a lane. Exactly one of two things happens to it, decided by one
// compare-and-set of its state: a flight serves it, or it leaves. What was written for
// one that has left is not read by anybody.
type waiter struct {
	n       int
	expires time.Time     // guarded by the lane's mutex until a flight has it; zero: see lane.stamp
	wake    chan struct{} // gets one value when the waiter is served
	state   atomic.Int32

	batch *batch // guarded by the lane's mutex; nil: not in a flight

	// The outcome, written before the state says served.
	ranges []leaf.Range // of NextN
	id     int64        // of Next, which allocates nothing: n is 0 then
	err    error
}

const (
	waiting int32 = iota
	served
	left
)

// size is how many IDs the waiter wants.
func (w *waiter) size() int { return max(w.n, 1) }

// serve wakes the waiter, and returns false if it has left meanwhile.
func (w *waiter) serve() bool {
	if !w.state.CompareAndSwap(waiting, served) {
		return false
	}
	w.wake <- struct{}{}
	return true
}

// fail serves the waiter an error, unless it has left.
func (w *waiter) fail(err error) {
	w.err = err
	w.serve()
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
