package segment

import (
	"sync/atomic"

	"github.com/leaf-idgen/leaf"
)

// piece is a part of a reserved range that is being issued: IDs from cursor up to
// end. It alone decides who gets which of its IDs, so any number of goroutines may
// still hold a piece that is no longer current.
//
// Interleavings. Two callers add to the cursor: the processor orders the adds, so
// they get different IDs. A caller adds after the last ID was taken: its result is
// not below end, it takes nothing and enters the slow path; the number it skipped
// lies outside the piece and belongs to whoever holds that part of the range. A
// caller loads the pointer to this piece and is then delayed while the piece is
// used up or shut and a new one is published: its add meets a cursor at or above
// end, as before.
type piece struct {
	end int64
	_   [120]byte
	// The cursor has a cache line of its own: two processors that take turns at it
	// would otherwise fetch the line once for the add and once more for end.
	cursor atomic.Int64 // the next ID; may run past end
	_      [120]byte
}

func newPiece(r leaf.Range) *piece {
	p := &piece{end: r.Hi}
	p.cursor.Store(r.Lo)
	return p
}

// take takes up to n IDs, fewer if the piece ends first. The look at the cursor
// before the add bounds how far the cursor can run past end: only callers that
// are between the two lines add to a used-up piece, leaf.MaxBatch each. MaxMaxID
// leaves 2^42 numbers for them below the end of int64, which a piece reaches only
// with 43 million goroutines between the two lines.
func (p *piece) take(n int64) leaf.Range {
	if p.cursor.Load() >= p.end {
		return leaf.Range{}
	}
	lo := p.cursor.Add(n) - n
	return leaf.Range{Lo: lo, Hi: min(lo+n, p.end)}
}

// takeWhole takes n IDs, or none if fewer are left.
func (p *piece) takeWhole(n int64) leaf.Range {
	if n == 1 {
		return p.take(1)
	}
	return p.takeBetween(n, n)
}

// takeBetween takes up to most IDs, or none if fewer than least are left.
func (p *piece) takeBetween(least, most int64) leaf.Range {
	for {
		lo := p.cursor.Load()
		n := min(p.end-lo, most)
		if n <= 0 || n < least {
			return leaf.Range{}
		}
		if p.cursor.CompareAndSwap(lo, lo+n) {
			return leaf.Range{Lo: lo, Hi: lo + n}
		}
	}
}

// shut ends the piece and returns what was not taken. No caller issues from the
// returned range any more: an add that came before the swap is below what the swap
// returned, one that comes after it starts at end (rule G).
func (p *piece) shut() leaf.Range {
	for {
		at := p.cursor.Load()
		duringShut()
		if p.cursor.CompareAndSwap(at, p.end) {
			return leaf.Range{Lo: min(at, p.end), Hi: p.end}
		}
	}
}

// duringShut runs between the look at the cursor and the swap. A test takes an ID there.
var duringShut = func() {}

// position returns the first ID that was not taken.
func (p *piece) position() int64 { return min(p.cursor.Load(), p.end) }
