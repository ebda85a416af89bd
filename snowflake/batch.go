package snowflake

import (
	"context"
	"fmt"
)

// MaxBatch is the most IDs that one call of NextN takes.
const MaxBatch = 100_000

// NextN returns exactly n IDs, 1 to MaxBatch, or an error and none. The ranges are
// in order and increase; each lies within one unit, so there is more than one if n
// is more than what a unit has left. Other calls may take IDs between two ranges,
// never within one. It waits as Next does, once per unit. On an error, what it had
// taken is lost.
//
// While a batch lacks more than a sixteenth of a unit's capacity, it takes nothing of the second
// half of a unit: that is for calls of Next and small batches. A large batch
// therefore lasts at least n divided by half the capacity, in units.
//
// The errors are those of Next, and ErrInvalid for n.
func (g *Generator) NextN(ctx context.Context, n int) ([]Range, error) {
	if n < 1 || n > MaxBatch {
		return nil, invalid("n", n, fmt.Sprintf("must be 1 to %d", MaxBatch))
	}
	var ranges []Range
	for left := uint64(n); left > 0; {
		w, count, err := g.take(ctx, left)
		if err != nil {
			return nil, err
		}
		lo := g.id(w)
		ranges = append(ranges, Range{Lo: lo, Hi: lo + int64(count)})
		left -= count
	}
	return ranges, nil
}
