package app

import (
	"context"

	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
)

// repair repairs a tag by a plan, and returns the tag with it.
func (c catalog) repair(ctx context.Context, alloc *segment.Allocator, name string, above int64) (manage.Repair, error) {
	plan, err := alloc.RepairByPlan(ctx, name, above)
	if err != nil {
		return manage.Repair{}, err
	}
	tag, err := c.tag(ctx, name)
	return manage.Repair{Tag: tag, Plan: planOf(plan)}, err
}

func planOf(p segment.RepairPlan) manage.RepairPlan {
	nodes := []manage.RepairNode{} // an empty list, not null
	for _, n := range p.Nodes {
		nodes = append(nodes, manage.RepairNode(n))
	}
	return manage.RepairPlan{
		Row: p.Row, Nodes: nodes, Posted: p.Posted, ClusterFence: p.ClusterFence,
		Above: p.Above, First: p.First, Refused: p.Refused,
	}
}
