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
	Alone        string       `json:"alone,omitempty"`                // why the other nodes are neither asked nor told; empty if they are
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

// RepairTag is the request of [Backend.RepairTag].
type RepairTag struct {
	Name  string `query:"tag" json:"-"`
	Above int64  `json:"above,string"`
}

func (q RepairTag) run(ctx context.Context, c *Catalog) (Repair, error) {
	alloc, err := c.Engine(ctx)
	if err != nil {
		return Repair{}, err
	}
	plan, err := alloc.RepairByPlan(ctx, q.Name, q.Above)
	if err != nil {
		return Repair{}, err
	}
	tag, err := c.tag(ctx, q.Name)
	return Repair{Tag: tag, Plan: planOf(plan)}, err
}

// RepairTag moves a tag above the highest number in use and releases it on every
// node; it asks all nodes for that number. With above other than 0 the number is at
// least above, and nodes that do not answer are left out. It may be repeated. Errors:
// leaf.ErrNotReady if a node does not answer, named in the text; leaf.ErrConflict if
// above lies below a number that is known; leaf.ErrUnknownTag, which releases a latched
// tag without a row all the same; leaf.ErrBadRequest.
func (b Backend) RepairTag(ctx context.Context, name string, above int64) (Repair, error) {
	return do[Repair](ctx, b, RepairTag{name, above})
}

// PlanRepair is the request of [Backend.PlanRepair]. It has an HTTP method of its own: a node
// that does not know it refuses, and repairs nothing.
type PlanRepair struct {
	Name  string `query:"tag"`
	Above int64  `query:"above" default:"0" must:"must be a number"`
}

func (q PlanRepair) run(ctx context.Context, c *Catalog) (RepairPlan, error) {
	alloc, err := c.Engine(ctx)
	if err != nil {
		return RepairPlan{}, err
	}
	plan, err := alloc.PlanRepair(ctx, q.Name, q.Above)
	return planOf(plan), err
}

// PlanRepair returns what RepairTag with the same arguments would do, or why it would
// refuse, and changes nothing. Errors: those of RepairTag that keep it from asking.
func (b Backend) PlanRepair(ctx context.Context, name string, above int64) (RepairPlan, error) {
	return do[RepairPlan](ctx, b, PlanRepair{name, above})
}

func planOf(p segment.RepairPlan) RepairPlan {
	nodes := []RepairNode{} // an empty list, not null
	for _, n := range p.Nodes {
		nodes = append(nodes, RepairNode(n))
	}
	return RepairPlan{
		Row: p.Row, Nodes: nodes, Posted: p.Posted, ClusterFence: p.ClusterFence,
		Above: p.Above, First: p.First, Refused: p.Refused, Alone: p.Alone,
	}
}
