package manage

import (
	"context"

	"github.com/leaf-idgen/leaf/segment"
)

// Repair is what RepairTag did.
type Repair struct {
	Tag             // afterwards
	Plan RepairPlan `json:"plan"`
}

// RepairPlan is what a repair of a tag goes by, and what comes of it. Its numbers are
// ends of ranges: all that was issued lies below. 0: none is known.
type RepairPlan struct {
	Row          int64        `json:"row,string"`                     // max_id, 0 without a row
	Nodes        []RepairNode `json:"nodes"`                          // the one that asks is the first
	Posted       int64        `json:"posted,string,omitempty"`        // what nodes posted of a regress or a repair
	ClusterFence int64        `json:"cluster_fence,string,omitempty"` // 0 without a cluster fence
	Above        int64        `json:"above,string,omitempty"`         // nothing at or below is issued then; 0 if refused
	First        int64        `json:"first,string,omitempty"`         // max_id afterwards, where IDs go on; 0 if refused
	Refused      string       `json:"refused,omitempty"`              // why nothing would be repaired
}

// RepairNode is what a node knows of a tag that is repaired.
type RepairNode struct {
	Node  string `json:"node"`       // identity of its data directory
	End   int64  `json:"end,string"` // the highest end that it reserved
	State string `json:"state"`      // see the constants
}

// States of a RepairNode.
const (
	RepairNodeOK      = "ok"
	RepairNodeLatched = "latched"
	RepairNodeSilent  = "silent" // it did not answer; End is from an earlier answer
	RepairNodeLeft    = "left"   // it was not asked; End is from an earlier answer
)

// Repair repairs a tag by a plan, and returns the tag with it.
func (c *Catalog) Repair(ctx context.Context, alloc *segment.Allocator, name string, above int64) (Repair, error) {
	plan, err := alloc.RepairByPlan(ctx, name, above)
	if err != nil {
		return Repair{}, err
	}
	tag, err := c.Tag(ctx, name)
	return Repair{Tag: tag, Plan: PlanOf(plan)}, err
}

// PlanOf is the plan of an engine, for people.
func PlanOf(p segment.RepairPlan) RepairPlan {
	nodes := []RepairNode{} // an empty list, not null
	for _, n := range p.Nodes {
		nodes = append(nodes, RepairNode(n))
	}
	return RepairPlan{
		Row: p.Row, Nodes: nodes, Posted: p.Posted, ClusterFence: p.ClusterFence,
		Above: p.Above, First: p.First, Refused: p.Refused,
	}
}
