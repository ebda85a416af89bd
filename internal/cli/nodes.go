package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/leaf-idgen/leaf/internal/manage"
)

// nodeGroup are the commands about the nodes of a cluster.
type nodeGroup struct {
	List   nodeListCmd   `cmd:"" help:"List the nodes that clients find."`
	Weight nodeWeightCmd `cmd:"" help:"Change the running node's share of the traffic."`
}

type nodeListCmd struct {
	directoryFlags
	smallJSONFlag
}

// Help implements kong.HelpProvider.
func (nodeListCmd) Help() string {
	return `The nodes that are in the directory, which clients read to find them: a database, etcd or ZooKeeper (node.discovery). A node enters it when it starts and leaves it when it is drained or stopped; after a crash its entry ends within seconds. That a node is listed does not say that it is ready.

Without a running node, --store or --node-discovery say where the directory is.`
}

// Run lists the nodes of the cluster.
func (c *nodeListCmd) Run(ctx context.Context, p Process) error {
	return ask(ctx, p, c, manage.ListNodes{}, printNodes)
}

type nodeWeightCmd struct {
	nodeFlags
	smallJSONFlag
	Weight int `arg:"" help:"Share of the traffic relative to the other nodes of the zone, 0 to 1000. 0: only while no other node answers."`
}

// Help implements kong.HelpProvider.
func (nodeWeightCmd) Help() string {
	return `The weight is published at once, and clients follow when they next read the directory (clients of this project: every 2s). It lasts until the process ends; the next one has node.weight again.

To shift traffic away from a node in steps: leaf node weight 50, leaf node weight 10, leaf node weight 0, then leaf drain.`
}

// Run changes the weight of the running node.
func (c *nodeWeightCmd) Run(ctx context.Context, p Process) error {
	return ask(ctx, p, c, manage.SetWeight{Weight: c.Weight}, func(w io.Writer, n manage.Node) error {
		_, err := fmt.Fprintf(w, "node %s has weight %d\n", n.ID, n.Weight)
		return err
	})
}

func printNodes(w io.Writer, all manage.Nodes) error {
	header := []string{"NODE", "ZONE", "WEIGHT"}
	for _, a := range (manage.Node{}).Addresses() {
		header = append(header, strings.ToUpper(a.Protocol))
	}
	rows := [][]string{append(header, "NOTE")}
	for _, n := range all.Nodes {
		row := []string{n.ID, printable(orDash(n.Zone)), strconv.Itoa(n.Weight)}
		for _, a := range n.Addresses() {
			row = append(row, orDash(a.Value))
		}
		rows = append(rows, append(row, ownNote(n.Own)))
	}
	return printTable(w, rows)
}
