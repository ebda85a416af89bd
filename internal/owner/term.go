package owner

import (
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
)

// Term is one time in which this node owns a slot. All methods are safe for concurrent use.
type Term struct {
	slot  int
	epoch int64 // of the slot's record; larger than that of every term before
	clock clock

	ended   atomic.Bool
	renewed atomic.Pointer[renewal]
}

// clock tells how long a renewal counts.
type clock struct {
	rt      leaf.Runtime
	elapsed func() time.Duration // nil: there is none
}

// renewal is a moment before the last write that confirmed a term was sent, and what it grants.
type renewal struct {
	sent    time.Time
	elapsed time.Duration // then, by clock.elapsed
	lease   time.Duration
}

// now begins a renewal.
func (c clock) now(lease time.Duration) *renewal {
	r := &renewal{sent: c.rt.Now(), lease: lease}
	if c.elapsed != nil {
		r.elapsed = c.elapsed()
	}
	return r
}

// holds reports whether the renewal counts still. Without a clock that counts suspensions, the monotonic
// clock stands still in one, and the wall clock may be set back: they must agree.
func (c clock) holds(r *renewal) bool {
	if c.elapsed != nil {
		return c.elapsed()-r.elapsed < r.lease
	}
	now := c.rt.Now()
	ran, wall := now.Sub(r.sent), now.Round(0).Sub(r.sent.Round(0))
	return max(ran, wall) < r.lease && (ran-wall).Abs() < margin(r.lease)
}

// Valid reports whether the term is in force. Take a number first, and then ask: if the answer is
// true, no later term of the slot had begun when the number was taken. Asked before, the process may
// stand still between answer and number for as long as another node needs to begin the next term.
//
// Why the order holds: end stores ended before the record names another owner, so whoever finds it
// unset took its number before that. And another node takes over without being asked only after
// the lease and the margin, which it counts from a moment after sent.
func (t *Term) Valid() bool { return !t.ended.Load() && t.clock.holds(t.renewed.Load()) }

// extend takes over a later renewal, unless the term has run out meanwhile: then it is over.
func (t *Term) extend(r *renewal) bool {
	if !t.Valid() {
		t.ended.Store(true)
		return false
	}
	t.renewed.Store(r)
	return true
}

func (t *Term) end() { t.ended.Store(true) }
