package fence

// MaxEnd is the highest end of a range: 2^42 below the largest 64-bit number, so that no sum
// of an end and the IDs of one request overflows.
const MaxEnd = 1<<63 - 1 - (1 << 42)

// Mark is what a node knows of a tag's ranges.
type Mark struct {
	High    int64 // highest end of the ranges this node reserved, 0 if none
	Latched bool  // no loads until repaired: the store went backwards, or the mark is Rebuilt
	Rebuilt bool  // latched because this node lost its fence; the others need not stop

	// Unread: this node latched the tag by a range that it refused, and has not read the
	// board since. A repair that it finds there may be older than the range.
	Unread bool

	// Read is how much of High is no range of this node: leaf fence rebuild latches a tag at
	// the max_id that it read (rule M).
	Read int64
}

// ranges returns the highest end of the ranges that this node reserved, as far as it knows.
func (m Mark) ranges() int64 { return m.High - m.Read }
