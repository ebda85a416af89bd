package cache

import (
	"sync/atomic"

	"github.com/leaf-idgen/leaf"
)

// piece is one range that is being handed out. It never gets more IDs and never gives
// one back, so who adds to taken owns what lay between the old and the new value as far
// as that lies within the range, and nobody else ever does.
//
// The counter starts at 0 and not at the first ID: it runs past the end while callers
// look for the next piece, and near the top of int64 an ID would wrap around.
type piece struct {
	taken atomic.Int64 // IDs taken, and more once the piece is used up
	_     [56]byte     // lo and size are only read: they stay on a cache line of their own

	lo, size int64
	refill   int64 // whoever takes the ID with this number starts the next fetch; -1: nobody does
}

func newPiece(r leaf.Range, refill int64) *piece {
	return &piece{lo: r.Lo, size: r.Len(), refill: refill}
}

// take takes up to n IDs. r is empty if there are none left; due says that it is this
// caller who starts the next fetch.
func (p *piece) take(n int64) (r leaf.Range, due bool) {
	end := p.taken.Add(n)
	start := end - n
	if start >= p.size {
		return leaf.Range{}, false
	}
	due = start <= p.refill && p.refill < end
	return leaf.Range{Lo: p.lo + start, Hi: p.lo + min(end, p.size)}, due
}

// left returns how many IDs nobody has taken.
func (p *piece) left() int64 { return max(0, p.size-p.taken.Load()) }
