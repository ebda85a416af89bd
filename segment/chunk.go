package segment

import (
	"sync/atomic"

	"github.com/leaf-idgen/leaf"
)

// chunk is a part of a reserved range that is being issued: IDs from cursor up to
// end. It alone decides which caller gets which of its IDs, so any number of goroutines may
// still hold a chunk that is no longer current.
//
// Interleavings. Two callers add to the cursor: the processor orders the adds, so
// they get different IDs. A caller adds after the last ID was taken: its result is
// not below end, it takes nothing and enters the slow path; the number it skipped
// lies outside the chunk and belongs to the holder of that part of the range. A
// caller loads the pointer to this chunk and is then delayed while the chunk is
// used up or shut and a new one is published: its add meets a cursor at or above
// end, as before.
type chunk struct {
	end  int64
	term Term // in which the range was reserved, nil in plain order
	_    [104]byte
	// The cursor has a cache line of its own: two processors that take turns at it
	// would otherwise fetch the line once for the add and once more for end.
	cursor atomic.Int64 // the next ID; may run past end
	_      [120]byte
}

func newChunk(r leaf.Range, term Term) *chunk {
	c := &chunk{end: r.Hi, term: term}
	c.cursor.Store(r.Lo)
	return c
}

// take takes up to n IDs, fewer if the chunk ends first. The look at the cursor
// before the add bounds how far the cursor can run past end: only callers that
// are between the two lines add to a used-up chunk, leaf.MaxBatch each. MaxMaxID
// leaves 2^42 numbers for them below the end of int64, which a chunk reaches only
// with 43 million goroutines between the two lines.
func (c *chunk) take(n int64) leaf.Range {
	if c.cursor.Load() >= c.end {
		return leaf.Range{}
	}
	lo := c.cursor.Add(n) - n
	return leaf.Range{Lo: lo, Hi: min(lo+n, c.end)}
}

// takeWhole takes n IDs, or none if fewer are left.
func (c *chunk) takeWhole(n int64) leaf.Range {
	if n == 1 {
		return c.take(1)
	}
	return c.takeBetween(n, n)
}

// takeBetween takes up to most IDs, or none if fewer than least are left.
func (c *chunk) takeBetween(least, most int64) leaf.Range {
	for {
		lo := c.cursor.Load()
		n := min(c.end-lo, most)
		if n <= 0 || n < least {
			return leaf.Range{}
		}
		if c.cursor.CompareAndSwap(lo, lo+n) {
			return leaf.Range{Lo: lo, Hi: lo + n}
		}
	}
}

// shut ends the chunk and returns what was not taken. No caller issues from the
// returned range any more: an add that came before the swap is below what the swap
// returned, one that comes after it starts at end (rule G).
func (c *chunk) shut() leaf.Range {
	for {
		at := c.cursor.Load()
		duringShut()
		if c.cursor.CompareAndSwap(at, c.end) {
			return leaf.Range{Lo: min(at, c.end), Hi: c.end}
		}
	}
}

// duringShut runs between the look at the cursor and the swap. A test takes an ID there.
var duringShut = func() {}

// position returns the first ID that was not taken.
func (c *chunk) position() int64 { return min(c.cursor.Load(), c.end) }
