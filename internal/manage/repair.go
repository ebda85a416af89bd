package manage

import (
	"context"
	"fmt"
	"slices"

	"github.com/leaf-idgen/leaf/segment"
)

// Repair is what RepairTag did.
type Repair struct {
	Tag                     // afterwards
	Plan segment.RepairPlan `json:"plan"`
}

// RepairTag moves a tag above the highest number in use and releases it on every
// node; it asks all nodes for that number. With Above other than 0 the number is at
// least Above, and nodes that do not answer are left out. It may be repeated. Errors:
// leaf.ErrNotReady if a node does not answer, named in the text; leaf.ErrConflict if
// Above lies below a number that is known; leaf.ErrUnknownTag, which releases a latched
// tag without a row all the same; leaf.ErrBadRequest.
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
	tag, err := c.changedTag(ctx, q.Name)
	if err != nil {
		tag.MaxID = plan.First
	}
	return Repair{Tag: tag, Plan: plan}, err
}

// PlanRepair returns what RepairTag with the same arguments would do, or why it would
// refuse, and changes nothing. Errors: those of RepairTag that keep it from asking. It has an
// HTTP method of its own: a node that does not know it refuses, and repairs nothing.
type PlanRepair struct {
	Name  string `query:"tag"`
	Above int64  `query:"above" default:"0" must:"must be a number"`
}

func (q PlanRepair) run(ctx context.Context, c *Catalog) (segment.RepairPlan, error) {
	alloc, err := c.Engine(ctx)
	if err != nil {
		return segment.RepairPlan{}, err
	}
	plan, err := alloc.PlanRepair(ctx, q.Name, q.Above)
	latched := slices.ContainsFunc(plan.Nodes, func(n segment.RepairNode) bool { return n.State == segment.RepairNodeLatched })
	if err == nil && plan.NoRow && plan.Refused == "" && !latched {
		plan.Refused = fmt.Sprintf("tag %q has no row, and no node has latched it: there is nothing to repair", q.Name)
		plan.Above, plan.First = 0, 0
	}
	return plan, err
}
