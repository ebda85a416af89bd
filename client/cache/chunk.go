package cache

import (
	"sync/atomic"

	"github.com/leaf-idgen/leaf"
)

// chunk is one range that is being handed out. It never gets more IDs, and takes none back.
// So a caller that adds to taken owns the numbers between the old and the new value, as far
// as they lie within the range, and no other caller ever does.
//
// The counter starts at 0 and not at the first ID: it runs past the end while callers
// look for the next chunk, and near the top of int64 an ID would wrap around.
type chunk struct {
	taken atomic.Int64 // IDs taken, and more once the chunk is used up
	_     [56]byte     // lo and size are only read: they stay on a cache line of their own

	lo, size int64
	refill   int64 // the caller that takes the ID with this number starts the next fetch; -1: none does
}

func newChunk(r leaf.Range, refill int64) *chunk {
	return &chunk{lo: r.Lo, size: r.Len(), refill: refill}
}

// take takes up to n IDs. r is empty if there are none left; due says that this caller
// starts the next fetch.
func (c *chunk) take(n int64) (r leaf.Range, due bool) {
	end := c.taken.Add(n)
	start := end - n
	if start >= c.size {
		return leaf.Range{}, false
	}
	due = start <= c.refill && c.refill < end
	return leaf.Range{Lo: c.lo + start, Hi: c.lo + min(end, c.size)}, due
}

// left returns how many IDs were not taken.
func (c *chunk) left() int64 { return max(0, c.size-c.taken.Load()) }
