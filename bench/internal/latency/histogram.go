// Package latency counts how long requests took.
package latency

import (
	"math/bits"
	"time"
)

// Histogram counts durations in buckets that are 1/32 of their value wide, so that a
// quantile is at most 3 % too high and noting costs no memory. Make it with New. It is
// not safe for concurrent use: give each goroutine its own and Add them up.
type Histogram struct {
	counts []int64
	total  int64
}

const sub = 32 // buckets per power of two

// New returns an empty Histogram.
func New() *Histogram { return &Histogram{counts: make([]int64, 64*sub)} }

// Note counts one duration; a negative one counts as 0.
func (h *Histogram) Note(d time.Duration) {
	h.counts[bucket(uint64(max(d, 0)))]++
	h.total++
}

func bucket(v uint64) int {
	if v < sub {
		return int(v)
	}
	shift := bits.Len64(v) - bits.Len64(sub)
	return shift*sub + int(v>>shift)
}

// upper returns the largest value of a bucket.
func upper(i int) uint64 {
	if i < 2*sub {
		return uint64(i)
	}
	shift := i/sub - 1
	return (uint64(i-shift*sub)+1)<<shift - 1
}

// Add counts all that other has counted.
func (h *Histogram) Add(other *Histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.total += other.total
}

// Total returns how many were noted.
func (h *Histogram) Total() int64 { return h.total }

// Quantile returns the duration that the part q of all does not exceed; 0 if there are none.
func (h *Histogram) Quantile(q float64) time.Duration {
	left := min(int64(q*float64(h.total)), h.total-1)
	for i, n := range h.counts {
		if left -= n; left < 0 {
			return time.Duration(upper(i))
		}
	}
	return 0
}
