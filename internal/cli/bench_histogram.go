package cli

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// histogram counts durations in buckets whose width grows with the value, as those of
// HdrHistogram do: 256 of 1 ns, then 128 for each doubling. The error is below 1/128
// and the memory fixed, 35 KB, whatever is counted. It is safe for concurrent use.
type histogram struct {
	buckets [histBuckets]atomic.Uint64
	max     atomic.Int64
}

const (
	histHalf     = 128
	histBits     = 41 // longest value: 2^41 ns - 1, 36 minutes
	histBuckets  = (histBits-8)*histHalf + 2*histHalf
	histLongest  = 1<<histBits - 1
	histHalfBits = 7
)

func histBucket(v int64) int {
	e := max(bits.Len64(uint64(v))-histHalfBits-1, 0)
	return e*histHalf + int(v>>e)
}

// histValue is the largest value of a bucket.
func histValue(bucket int) int64 {
	e := max(bucket/histHalf-1, 0)
	return int64(bucket-e*histHalf+1)<<e - 1
}

func (h *histogram) add(d time.Duration) {
	v := min(max(int64(d), 0), histLongest)
	h.buckets[histBucket(v)].Add(1)
	for {
		old := h.max.Load()
		if v <= old || h.max.CompareAndSwap(old, v) {
			return
		}
	}
}

// counts is what a histogram held at one moment.
type counts struct {
	buckets []uint64
	total   uint64
	max     time.Duration // exact; of a difference, that of its last bucket
}

func (h *histogram) counts() counts {
	c := counts{buckets: make([]uint64, histBuckets), max: time.Duration(h.max.Load())}
	for i := range h.buckets {
		c.buckets[i] = h.buckets[i].Load()
		c.total += c.buckets[i]
	}
	return c
}

// since returns what was counted after old.
func (c counts) since(old counts) counts {
	d := counts{buckets: make([]uint64, histBuckets)}
	for i := range c.buckets {
		if n := c.buckets[i] - old.buckets[i]; n > 0 {
			d.buckets[i] = n
			d.total += n
			d.max = min(time.Duration(histValue(i)), c.max)
		}
	}
	return d
}

// quantile returns the smallest duration that is not exceeded by the share q of all,
// 0 if there are none.
func (c counts) quantile(q float64) time.Duration {
	if c.total == 0 {
		return 0
	}
	rank := uint64(q*float64(c.total) + 0.999999)
	rank = min(max(rank, 1), c.total)
	var seen uint64
	for i, n := range c.buckets {
		if seen += n; seen >= rank {
			return min(time.Duration(histValue(i)), c.max)
		}
	}
	return c.max
}
