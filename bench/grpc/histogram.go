package main

import (
	"math/bits"
	"time"
)

// histogram counts durations in buckets that are 1/32 of their value wide, so that a
// quantile is at most 3 % too high and noting costs no memory.
type histogram struct {
	counts []int64
	total  int64
}

const sub = 32 // buckets per power of two

func newHistogram() *histogram { return &histogram{counts: make([]int64, 64*sub)} }

func (h *histogram) note(d time.Duration) {
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

func (h *histogram) add(other *histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.total += other.total
}

// quantile returns the duration that the part q of all does not exceed.
func (h *histogram) quantile(q float64) time.Duration {
	left := int64(q * float64(h.total))
	for i, n := range h.counts {
		if left -= n; left < 0 {
			return time.Duration(upper(i))
		}
	}
	return 0
}
