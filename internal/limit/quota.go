package limit

import (
	"sync/atomic"
	"time"
)

// counter counts the IDs of one UTC day. Day and count share one word, so that the new
// day begins for both at once.
type counter struct{ word atomic.Int64 }

const (
	countBits = 40 // MaxRate < 1<<40
	daySecs   = 24 * 60 * 60
)

func day(now time.Time) int64 { return now.Unix() / daySecs }

// untilMidnight is the time until the next day of UTC begins.
func untilMidnight(now time.Time) time.Duration {
	return time.Unix((day(now)+1)*daySecs, 0).Sub(time.Unix(now.Unix(), int64(now.Nanosecond())))
}

// take counts n more IDs, unless they would pass the quota.
func (c *counter) take(n, quota int64, now time.Time) (ok bool) {
	for {
		before := c.word.Load()
		used := n
		if before>>countBits == day(now) {
			used += before & (1<<countBits - 1)
		}
		if used > quota {
			return false
		}
		if c.word.CompareAndSwap(before, day(now)<<countBits|used) {
			return true
		}
	}
}

// refund undoes a take of the same day.
func (c *counter) refund(n int64, now time.Time) {
	for {
		before := c.word.Load()
		if before>>countBits != day(now) || before&(1<<countBits-1) < n || c.word.CompareAndSwap(before, before-n) {
			return
		}
	}
}

// used returns how many IDs were counted today.
func (c *counter) used(now time.Time) int64 {
	if word := c.word.Load(); word>>countBits == day(now) {
		return word & (1<<countBits - 1)
	}
	return 0
}
