package limit

import (
	"sync/atomic"
	"time"
)

// bucket is a rate: a bucket of one second's worth of IDs that fills steadily.
//
// It is one number, the moment at which the bucket is full again if nothing else is taken
// (the "theoretical arrival time" of GCRA), so that taking is one compare-and-swap and
// no clock has to tick. Moments are counted in sixteenths of a nanosecond since born:
// fine enough for the rates that a machine can reach, and 18 years fit.
type bucket struct {
	rate   int64 // IDs per second
	born   time.Time
	fullAt atomic.Int64
}

const (
	fraction    = 16 // parts of a nanosecond
	second      = fraction * int64(time.Second)
	longestDebt = 60 // seconds' worth of IDs that one batch may take
)

func newBucket(rate int64, now time.Time) *bucket { return &bucket{rate: rate, born: now} }

// most returns the largest n that can ever be taken at once.
func (b *bucket) most() int64 { return longestDebt * b.rate }

// cost is the time in which n IDs flow in, rounded up.
func (b *bucket) cost(n int64) int64 { return (n*second + b.rate - 1) / b.rate }

// take takes n IDs, 1 <= n <= leaf.MaxBatch, or returns how long it takes until they can
// be taken if no other request takes IDs meanwhile. More than the bucket holds can be taken
// when it is full.
func (b *bucket) take(n int64, now time.Time) (wait time.Duration, ok bool) {
	t, c := int64(now.Sub(b.born))*fraction, b.cost(n)
	for {
		before := b.fullAt.Load()
		after := max(before, t) + c
		if over := after - t - max(second, c); over > 0 {
			return time.Duration((over + fraction - 1) / fraction), false
		}
		if b.fullAt.CompareAndSwap(before, after) {
			return 0, true
		}
	}
}

// refund undoes take.
func (b *bucket) refund(n int64) { b.fullAt.Add(-b.cost(n)) }
