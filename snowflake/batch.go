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
// never within one. It waits as Next does, once per unit: a batch lasts at least
// n divided by the capacity of a unit. On an error, what it had taken is lost.
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
