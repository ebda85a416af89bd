package segment

import (
	"context"
	"slices"
	"strings"
)

// RepairPlan is what a repair of a tag goes by, and what comes of it. Its numbers are
// ends of ranges: all that was issued lies below. 0: none is known. 64-bit numbers are
// strings in JSON.
type RepairPlan struct {
	Row          int64        `json:"row,string"`                     // max_id of the row, 0 without a row
	NoRow        bool         `json:"no_row,omitempty"`               // the tag has no row
	Nodes        []RepairNode `json:"nodes"`                          // this node first, then the others by name
	Posted       int64        `json:"posted,string,omitempty"`        // what nodes posted of a regress or a repair
	Deleted      int64        `json:"deleted,string,omitempty"`       // max_id of the row that was deleted last, or of a higher one before it
	ClusterFence int64        `json:"cluster_fence,string,omitempty"` // of the tag, 0 without a cluster fence
	Above        int64        `json:"above,string,omitempty"`         // nothing at or below is issued after the repair by nodes that it reaches; 0 if it is refused
	First        int64        `json:"first,string,omitempty"`         // the row's max_id after the repair: IDs go on here; 0 if it is refused
	Refused      string       `json:"refused,omitempty"`              // why nothing is repaired; "" if nothing speaks against it

	// Alone is why the other nodes are neither asked nor told, so that they may go on issuing
	// numbers at or below Above; "" if they are.
	Alone string `json:"alone,omitempty"`

	// Untold are the nodes that have not said that they heed the repair; of a plan, those that do not answer. Until they
	// read of the repair they may go on issuing what they hold from below.
	Untold []string `json:"untold,omitempty"`
}

// RepairNode is what a node knows of a tag that is repaired.
type RepairNode struct {
	Node  string `json:"node"`       // identity of its data directory
	End   int64  `json:"end,string"` // the highest end that it reserved, or has heard of from the owner of the tag
	State string `json:"state"`      // RepairNodeOK and its neighbours
}

// States of a RepairNode.
const (
	RepairNodeOK      = "ok"
	RepairNodeLatched = "latched" // it issues nothing of the tag until it is repaired
	RepairNodeSilent  = "silent"  // it is listed, and did not answer; End is from an earlier answer
	RepairNodeLeft    = "left"    // it is not listed any more; End is from an earlier answer
)

// PlanRepair returns what Repair with the same arguments would do. It changes nothing: it
// posts a question for the nodes, and removes it when they had time to answer. Where Repair
// would refuse, the plan says why. For a tag with NoRow that no node has latched, Repair
// returns leaf.ErrUnknownTag. Errors: those of Repair that keep it from asking; then the
// question may stay.
func (a *Allocator) PlanRepair(ctx context.Context, tag string, above int64) (RepairPlan, error) {
	r, err := a.newRepair(ctx, tag, above)
	if err != nil {
		return RepairPlan{}, err
	}
	if err := r.ask(ctx); err != nil {
		return RepairPlan{}, err
	}
	r.forget(ctx)
	if err := r.decide(); err != nil {
		r.plan.Refused = err.Error()
	}
	return r.plan, nil
}

// note adds the answers of the other nodes to the plan, and those that did not answer.
func (r *repair) note(answers []Answer) {
	var nodes []RepairNode
	for _, x := range answers {
		if x.Node == DeletedRow {
			r.plan.Deleted = x.High
			continue
		}
		n := RepairNode{Node: x.Node, End: x.High, State: markState(x.Latched)}
		switch {
		case slices.Contains(r.mute, x.Node):
			n.State = RepairNodeSilent
		case x.Asked < r.asked:
			n.State = RepairNodeLeft
		}
		nodes = append(nodes, n)
	}
	for _, name := range r.mute {
		if !slices.ContainsFunc(nodes, func(n RepairNode) bool { return n.Node == name }) {
			nodes = append(nodes, RepairNode{Node: name, State: RepairNodeSilent})
		}
	}
	slices.SortFunc(nodes, func(a, b RepairNode) int { return strings.Compare(a.Node, b.Node) })
	r.plan.Nodes = append(r.plan.Nodes, nodes...)
}

func markState(latched bool) string {
	if latched {
		return RepairNodeLatched
	}
	return RepairNodeOK
}
