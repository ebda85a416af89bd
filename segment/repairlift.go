package segment

import (
	"context"
	"errors"

	"github.com/leaf-idgen/leaf"
)

// lift moves row and cluster fence one above the number, and returns where the row is. A load may take
// the row there, or further, meanwhile. The node of that load may have returned the range, and the
// statement may arrive when the repair has ended: it must not meet the same end, so the row moves by
// one more. To tell the end of a load from its own, lift moves a row that is below the number to the
// number first.
func (r *repair) lift(ctx context.Context) (row int64, err error) {
	to := r.high + 1
	if r.plan.Row < r.high && !r.plan.NoRow {
		if row, err = r.raise(ctx, r.high); err != nil && !errors.Is(err, leaf.ErrUnknownTag) {
			return row, err
		}
		if row > r.high {
			to = min(row+1, MaxMaxID)
		}
	}
	row, err = r.raise(ctx, to)
	if err == nil && row > to && row < MaxMaxID {
		row, err = r.raise(ctx, row+1)
	}
	return row, err
}
