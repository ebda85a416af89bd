package leaf

import (
	"fmt"
	"iter"
)

// Range is the half-open interval [Lo, Hi) of IDs. The zero Range is empty.
type Range struct {
	Lo int64 `json:"lo,string"` // first ID
	Hi int64 `json:"hi,string"` // first ID that is no longer part of the range
}

// Len returns the number of IDs in r, 0 if r is empty or inverted.
func (r Range) Len() int64 {
	if r.Hi <= r.Lo {
		return 0
	}
	return r.Hi - r.Lo
}

// String returns "[lo, hi)".
func (r Range) String() string { return fmt.Sprintf("[%d, %d)", r.Lo, r.Hi) }

// AppendRange appends r to dst and returns the result. An empty r is dropped,
// and an r that starts where the last range ends extends it, so that a batch
// which crosses a buffer boundary without a gap stays one range.
func AppendRange(dst []Range, r Range) []Range {
	if r.Len() == 0 {
		return dst
	}
	if n := len(dst); n > 0 && dst[n-1].Hi == r.Lo {
		dst[n-1].Hi = r.Hi
		return dst
	}
	return append(dst, r)
}

// IDs iterates over the IDs of ranges, in their order.
func IDs(ranges []Range) iter.Seq[int64] {
	return func(yield func(int64) bool) {
		for _, r := range ranges {
			for id := r.Lo; id < r.Hi; id++ {
				if !yield(id) {
					return
				}
			}
		}
	}
}
