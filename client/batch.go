package client

import (
	"slices"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf"
)

// batch is the callers that leave together. The flight that carries it owns it; the
// fields behind mu are where nodes put their answers.
type batch struct {
	lane    *lane
	waiters []*waiter
	count   int           // IDs that they want together
	wake    chan struct{} // gets a value when an answer has come or a caller has left

	said error // what nodes have said so far; guarded by the lane's mutex

	mu      sync.Mutex
	answers []answer
	closed  bool // answers come too late now
}

// answer is what became of one attempt.
type answer struct {
	attempt *attempt
	ranges  []leaf.Range
	err     error
}

// put adds an answer. It returns false if no caller waits for it any more.
func (b *batch) put(a answer) bool {
	b.mu.Lock()
	open := !b.closed
	if open {
		b.answers = append(b.answers, a)
	}
	b.mu.Unlock()
	if open {
		b.signal()
	}
	return open
}

// take returns the answers that have come since.
func (b *batch) take() []answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.answers
	b.answers = nil
	return a
}

// close ends the batch and returns the answers that came just before: too late too.
func (b *batch) close() []answer {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	a := b.answers
	b.answers = nil
	return a
}

func (b *batch) isClosed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.closed
}

func (b *batch) signal() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// deal hands ranges out in order, each ID to at most one waiter, and returns how many
// were received; strict is what the answer says of the tag. There are at least as many IDs as waiters want; what is left over is
// lost.
func (b *batch) deal(ranges []leaf.Range, strict bool) (received int64) {
	var first, last *waiter // of a chain that was not woken yet
	length := 0
	for k, w := range b.waiters {
		b.waiters[k] = nil // it may be another call's as soon as it is woken
		if w.state.Load() != waiting {
			continue
		}
		ranges = w.give(ranges)
		w.strict = strict
		size := int64(w.size())
		if !w.claim() {
			continue
		}
		received += size
		if length == 0 {
			first = w
		} else {
			last.next = w
		}
		last = w
		if length++; length == chainLength {
			first.wakeUp()
			length = 0
		}
	}
	if length > 0 {
		first.wakeUp()
	}
	return received
}

// fail serves an error to each caller that still waits.
func (b *batch) fail(err error) {
	for _, w := range b.waiters {
		if w.state.Load() == waiting {
			w.fail(err)
		}
	}
}

// expire fails the waiters whose time is up, and returns when the time of the next one is
// up; zero: no waiter is left.
func (b *batch) expire(now time.Time, said error) (next time.Time) {
	for _, w := range b.waiters {
		if w.state.Load() != waiting {
			continue
		}
		if !w.expires.After(now) {
			w.fail(late(said, nil))
			continue
		}
		if next.IsZero() || w.expires.Before(next) {
			next = w.expires
		}
	}
	return next
}

// drop takes the waiters out that were served or have left, so that a request which is
// sent again asks for no more than what is wanted.
func (b *batch) drop() {
	b.lane.mu.Lock()
	defer b.lane.mu.Unlock()
	b.waiters = slices.DeleteFunc(b.waiters, func(w *waiter) bool { return w.state.Load() != waiting })
	b.count = 0
	for _, w := range b.waiters {
		b.count += w.size()
	}
}
