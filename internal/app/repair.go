package app

import (
	"context"

	"github.com/leaf-idgen/leaf/internal/server/admin"
	"github.com/leaf-idgen/leaf/segment"
)

// repair repairs a tag by a plan, and returns the tag with it.
func (c catalog) repair(ctx context.Context, alloc *segment.Allocator, name string, above int64) (admin.Repair, error) {
	plan, err := alloc.RepairByPlan(ctx, name, above)
	if err != nil {
		return admin.Repair{}, err
	}
	tag, err := c.tag(ctx, name)
	return admin.Repair{Tag: tag, Plan: planOf(plan)}, err
}

func planOf(p segment.RepairPlan) admin.RepairPlan {
	nodes := []admin.RepairNode{} // an empty list, not null
	for _, n := range p.Nodes {
		nodes = append(nodes, admin.RepairNode(n))
	}
	return admin.RepairPlan{
		Row: p.Row, Nodes: nodes, Posted: p.Posted, ClusterFence: p.ClusterFence,
		Above: p.Above, First: p.First, Refused: p.Refused,
	}
}
