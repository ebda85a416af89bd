package fence

// MaxEnd is the highest end of a range. It is 2^42 below 2^63, so that an end plus the IDs of
// many requests does not overflow.
const MaxEnd = 1<<63 - 1 - (1 << 42)

// Mark is what a node knows of a tag's ranges.
type Mark struct {
	High    int64 // highest end of the ranges this node reserved, 0 if none
	Latched bool  // no loads until repaired: the store went backwards, or the mark is Rebuilt
	Rebuilt bool  // latched because this node lost its fence; the other nodes need not stop

	// Unread means that this node refused a range of the tag and has not read the board
	// since. A repair that it then finds on the board may be older than the range.
	Unread bool

	// Suspect means that the store offered this node a range below the newest entry of the
	// cluster fence that it saw, in an outage of that fence (see suspect).
	Suspect bool

	// Read is High minus the end of this node's own ranges, as far as known. leaf fence
	// rebuild latches a tag at the max_id that it reads, which other nodes may have reserved
	// (rule M).
	Read int64
}

// ranges returns the highest end of this node's own ranges, as far as known.
func (m Mark) ranges() int64 { return m.High - m.Read }
