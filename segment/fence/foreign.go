package fence

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf/internal/bounded"
)

// foreignError says that the cluster fence is that of other nodes (rule V).
type foreignError struct{ own, found string }

func (e *foreignError) Error() string {
	return fmt.Sprintf("it belongs to cluster %s, and this node to cluster %s", e.found, e.own)
}

// advice says what to do.
func (e *foreignError) advice() string {
	return fmt.Sprintf("make segment.cluster-fence lead to the fence of this node's cluster; "+
		"if a backup of this cluster was loaded into a new database, or the database lost its ID, keep the fence, which knows the numbers that the backup forgot: stop all nodes and Java servers, run in the database: UPDATE leaf_meta SET value = '%s' WHERE name = 'cluster_id', remove the file cluster of each data directory, and start the nodes as docs/OPERATIONS.md#backup-and-restore-drill says; "+
		"two clusters need two fences, so give one of them another name at the end of its URL, on all its nodes; "+
		"only if the tag rule has another first database than before (docs/MASTERS.md), give the fence of this cluster a new name, and each node fills it with what it knows", e.found)
}

// compareAgain is after how long a node that used the fence without an ID of its own asks for one again: it may get one, and then
// the fence may turn out to be that of others.
const compareAgain = time.Minute

// errNoID: the node does not know yet to which cluster it belongs. No database answers, so there are no ranges to take either,
// and no alarm of the fence is due.
var errNoID = errors.New("the ID of this node's cluster is not known yet")

// identify returns a *foreignError if the namespace is another cluster's. It compares before the node writes anything there:
// marks in the fence of other nodes would stop their tags. A namespace without an ID gets the node's own.
func (c *cluster) identify(space string) error {
	cfg := &c.fence.cfg
	if cfg.ClusterID == nil {
		return nil
	}
	own, err := bounded.Do(c.fence.running, &c.calls, cfg.Timeout, cfg.ClusterID)
	c.nameless = err == nil && own == ""
	if err != nil {
		return fmt.Errorf("%w: %w", errNoID, err)
	}
	found, err := bounded.Do(c.fence.running, &c.calls, cfg.Timeout, func(ctx context.Context) (string, error) {
		return c.store.Identify(ctx, space, own)
	})
	switch {
	case err != nil:
		return fmt.Errorf("read whose it is: %w", err)
	case own == "", found == "", own == found: // none is no other cluster's
		return nil
	}
	return &foreignError{own: own, found: found}
}
