package zookeeper

import (
	"context"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf/worker"
)

// kindMargin is how far clocks may be apart, and a Java server may be ahead of what it
// reports, when a claim of the other kind is judged.
const kindMargin = javaLag

// refuseOther returns worker.ErrTaken while a number of the other kind of registry, whose
// records lie in folder, is held under the same name: the two do not exclude each other,
// so a number could have an owner in each.
func (c *conn) refuseOther(ctx context.Context, kind, folder string, held func(p string, data []byte) (until int64)) error {
	nodes, err := c.list(ctx, folder)
	if err != nil {
		return err
	}
	var last int64
	for _, n := range nodes {
		last = max(last, held(folder+"/"+n.name, n.data))
	}
	if now := time.Now().UnixMilli(); last+kindMargin > now {
		return fmt.Errorf("%w: nodes with --snowflake-registry %s hold numbers below %s until %s; the two kinds do not know each other's numbers. "+
			"Stop all of those nodes, and wait until then if one of them crashed, or use another --snowflake-name with a --snowflake-worker-range that does not overlap",
			worker.ErrTaken, kind, folder, time.UnixMilli(last).UTC().Format(time.RFC3339))
	}
	return nil
}
