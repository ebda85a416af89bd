package owner

import (
	"sync/atomic"
	"time"
)

// Term is one time in which this node owns a slot. All methods are safe for concurrent use.
type Term struct {
	epoch   int64                // of the slot's record; larger than that of every term before
	elapsed func() time.Duration // as Config.Elapsed

	ended atomic.Bool
	until atomic.Int64 // in ns of elapsed: the lease after the moment before the last renewal was sent
}

// Valid reports whether the term is in force. Take a number first, and then ask: if the answer is
// true, no later term of the slot had begun when the number was taken. Asked before, the process may
// stand still between answer and number for as long as another node needs to begin the next term.
//
// Why the order holds: end stores ended before the record names another owner, so a caller that finds
// it unset took its number before that. And another node takes over without being asked only after
// the lease and the margin, which it counts from a moment after the renewal.
func (t *Term) Valid() bool { return !t.ended.Load() && t.elapsed() < time.Duration(t.until.Load()) }

// extend lets the term run on, unless it has run out meanwhile: then it is over.
func (t *Term) extend(until time.Duration) {
	if t.Valid() {
		t.until.Store(int64(until))
	} else {
		t.end()
	}
}

func (t *Term) end() { t.ended.Store(true) }
