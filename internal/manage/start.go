package manage

import (
	"context"
	"errors"
	"fmt"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/segment"
)

// checkStart refuses a tag that is created again with a start below a number in use. The caller knows that the tag was
// there before. The highest number may be another node's, so all are asked, as by a repair. Where one does not answer, or the
// tables are missing by which nodes are asked, a start above all that is known is the operator's word, and the refusal of a
// lower one names no number. A call that failed is no such case: the nodes may answer the next one.
func checkStart(ctx context.Context, alloc *segment.Allocator, row segment.NewRow) error {
	known, all, err := askNodes(ctx, alloc, row.Tag)
	switch {
	case err != nil:
		return err
	case row.Start >= known:
		return nil
	case all:
		return fmt.Errorf("%w: numbers of tag %q below %d are in use, so --start %d could repeat some; use --start %d or more%s",
			leaf.ErrConflict, row.Tag, known, row.Start, row.LeastStart(known), segment.StartOfNodes())
	}
	return errNotAll(row.Tag, row.Start, "plus "+segment.Margin)
}

// askNodes returns the end of the numbers of a tag, as far as this node, its databases and all nodes know. all reports whether
// every node was asked.
func askNodes(ctx context.Context, alloc *segment.Allocator, tag string) (known int64, all bool, err error) {
	plan, err := alloc.PlanRepair(ctx, tag, 0)
	all = err == nil && plan.Refused == ""
	if err != nil && !errors.Is(err, segment.ErrSchema) {
		return 0, false, err
	}
	known = max(alloc.Mark(tag).High, plan.Posted, plan.Deleted, plan.ClusterFence)
	for _, n := range plan.Nodes {
		known = max(known, n.End)
	}
	return known, all, nil
}

// errNotAll names what is to be added to the highest number that people find, because a node does not answer.
func errNotAll(tag string, start int64, add string) error {
	return fmt.Errorf("%w: numbers of tag %q were issued, so --start %d could repeat some, and not every node can be asked up to where: "+
		"leaf tag repair TAG --plan says why. Once it names no node that does not answer, run this command again, which then names a start; until then only this start is safe: "+
		"the highest number of the tag in your own tables, %s", leaf.ErrConflict, tag, start, add)
}

// checkCluster refuses a start below what the cluster fence holds of the tag. Its row may have
// vanished, and this node may never have served it.
func (c *Catalog) checkCluster(ctx context.Context, row segment.NewRow) error {
	if c.ClusterEnd == nil {
		return nil
	}
	end, err := c.ClusterEnd(ctx, row.Tag)
	switch {
	case err != nil:
		return fmt.Errorf("look for tag %q in the cluster fence: %w", row.Tag, err)
	case row.Start < end && c.missing(ctx, row.Tag) == nil:
		return fmt.Errorf("%w: the cluster fence holds numbers of tag %q below %d, so no node would issue from --start %d; use --start %d or more%s",
			leaf.ErrConflict, row.Tag, end, row.Start, row.LeastStart(end), segment.StartOfNodes())
	}
	return nil
}
