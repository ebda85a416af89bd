package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/worker"
)

// kind is one of the two kinds of registry that may lie below a name. They do not know
// each other's numbers, so no claim is made while both have a namespace: a claimer first
// reads its own one, then finds that the other kind has none, and then expects, in the
// multi that claims, as in each that renews, that its own one is still there. Of two
// kinds that start at once, the one whose namespace is younger sees the other one's. A kind
// takes the name over when no number of the other one is held: it ends the other
// namespace first, so that no T there grows any more, and its own numbers start above
// all of them.
type kind struct {
	name      string // as --snowflake-registry says it
	namespace string // path of the node
	folder    string
	list      func(context.Context) ([]worker.Record, error)
}

// pool is the other kind below the name of o.
func (o *Original) pool() kind {
	r := &Recycle{conn: o.conn, root: o.root + "/leaf_pool"}
	return kind{name: "zookeeper-recycle", namespace: r.namespace(), folder: r.root, list: r.List}
}

// fixed is the other kind below the name of r.
func (r *Recycle) fixed() kind {
	o := &Original{conn: r.conn, root: path.Dir(r.root)}
	return kind{name: "zookeeper", namespace: o.namespace(), folder: o.root, list: o.List}
}

// kindMargin is how far clocks may be apart when it is judged whether a node of the other
// kind may run.
const kindMargin = javaLag

// supersede ends the namespace of the other kind, if there is one, and returns the highest
// T there. It returns an error while a number there is held, or a record cannot be read.
func (c *conn) supersede(ctx context.Context, other kind) (highest int64, err error) {
	if err := c.sync(ctx, other.folder); err != nil {
		return 0, err
	}
	for {
		// Before the records: without a namespace no T there grows.
		ns, err := c.readNamespace(ctx, other.namespace)
		if err != nil {
			return 0, err
		}
		records, err := other.list(ctx)
		if err != nil {
			return 0, err
		}
		if highest, err = other.highest(records, time.Now().UnixMilli()); err != nil {
			return 0, err
		}
		if ns == nil {
			return highest, nil
		}
		if err := c.end(ctx, other.namespace, ns.version); err != nil && !errors.Is(err, errMoved) {
			return 0, err
		}
	}
}

// highest returns the highest T of records. A number that its owner released is free
// from T on; any other one a margin later.
func (k kind) highest(records []worker.Record, now int64) (int64, error) {
	const elsewhere = "or divide the numbers as docs/SNOWFLAKE.md#operating says, and use another --snowflake-name"
	var highest, until int64
	for _, r := range records {
		if r.Damage != "" {
			return 0, fmt.Errorf("%w: below %s a record of --snowflake-registry %s cannot be read, so it is unknown until when its number is held: %s. "+
				"Stop all nodes of that registry, and Java servers for good, "+worker.LongestWait+", and delete the node that cannot be read, %s",
				leaf.ErrConflict, k.folder, k.name, r.Damage, elsewhere)
		}
		highest = max(highest, r.Bound)
		if !r.Released {
			until = max(until, r.Bound+kindMargin)
		}
	}
	if until = max(until, highest); until > now {
		return 0, fmt.Errorf("%w: nodes with --snowflake-registry %s hold numbers below %s until %s; the two kinds do not know each other's numbers. "+
			"Stop all of those nodes, and Java servers for good, and wait until then if one of them crashed, %s",
			worker.ErrTaken, k.name, k.folder, time.UnixMilli(until).UTC().Format(time.RFC3339), elsewhere)
	}
	return highest, nil
}

// end deletes the namespace at p, and with it every claim in it.
func (c *conn) end(ctx context.Context, p string, version int32) error {
	guards, err := c.children(ctx, p)
	if err != nil {
		return err
	}
	var ops []any
	for _, name := range guards {
		ops = append(ops, remove(p+"/"+name, anyVersion))
	}
	_, err = c.change(ctx, p, append(ops, remove(p, version))...)
	return err
}
