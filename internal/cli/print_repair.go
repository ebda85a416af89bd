package cli

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
)

func printRepair(w io.Writer, r manage.Repair) error {
	if len(r.Plan.Nodes) > 0 { // a node of an earlier version tells of none
		if err := printRepairPlan(w, r.Plan); err != nil {
			return err
		}
		fmt.Fprintln(w)
	}
	return printTag(w, r.Tag)
}

// printRepairPlan prints what a repair goes by.
func printRepairPlan(w io.Writer, p segment.RepairPlan) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	line := func(name string, number int64, text string) {
		if number != 0 {
			text = strconv.FormatInt(number, 10) + text
		}
		if text != "" {
			fmt.Fprintf(tw, "%s\t%s\n", name, text)
		}
	}
	if p.NoRow {
		line("row", 0, "none")
	} else {
		line("row", 0, strconv.FormatInt(p.Row, 10)+" (max_id)")
	}
	for _, n := range p.Nodes {
		line("node "+printable(n.Node), 0, nodeText(n))
	}
	reach := " (no node issues a number at or below it)"
	if p.Alone != "" {
		line("other nodes", 0, "neither asked nor told: "+p.Alone)
		reach = " (only this node is told: do what the line \"other nodes\" says, then repeat the command)"
	}
	line("posted", p.Posted, "")
	if p.Deleted != 0 {
		line("deleted row", p.Deleted, " (max_id)")
	}
	line("cluster fence", p.ClusterFence, "")
	if p.Refused != "" {
		line("refused", 0, p.Refused)
		return tw.Flush()
	}
	if len(p.Untold) > 0 {
		line("not told", 0, printable(strings.Join(p.Untold, ", "))+": "+untoldKeep)
		reach = " (no node that is told issues a number at or below it)"
	}
	line("above", 0, strconv.FormatInt(p.Above, 10)+reach)
	line("first ID", p.First, "")
	if p.Above != 0 {
		unless := ""
		if p.ClusterFence != 0 { // it may be younger than the loss
			unless = "unless all nodes had this cluster fence already when the database lost commits, with the policy refuse, and it had lost nothing itself, "
		}
		line("clients", 0, "afterwards, "+unless+restartKeepers)
	}
	return tw.Flush()
}

// restartKeepers is what to do about IDs that no node can drop.
const restartKeepers = "restart the programs that keep IDs of the tag in memory, as those with a cache of the Go client do (WithCache)"

// untoldKeep is what nodes do that a repair has not reached, and what to do about it.
const untoldKeep = "until they read of the repair, which they do once the database answers them, they issue the IDs from below that they hold in memory; where another service may have handed those out, stop these nodes"

// nodeText is what a node answered: "its ranges end at 121, latched".
func nodeText(n segment.RepairNode) string {
	text := fmt.Sprintf("its ranges end at %d", n.End)
	if n.End == 0 {
		text = "no range"
	}
	switch n.State {
	case segment.RepairNodeSilent:
		if n.End == 0 {
			return "does not answer"
		}
		return fmt.Sprintf("does not answer; it answered %d before", n.End)
	case segment.RepairNodeLeft:
		return text + ", not asked: it is stopped, or was not seen for 24 hours"
	case segment.RepairNodeLatched:
		return text + ", latched"
	}
	return text
}
