package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/manage"
)

type nodeListCmd struct {
	Settings settings `embed:""`
	JSON     bool     `name:"json" help:"Print JSON."`
}

// Help implements kong.HelpProvider.
func (nodeListCmd) Help() string {
	return `The nodes that are in the directory, which clients read to find them: a database, etcd or ZooKeeper (node.discovery). A node enters it when it starts and leaves it when it is drained or stopped; after a crash its entry ends within seconds. That a node is listed does not say that it is ready.

Without a running node, --store or --node-discovery say where the directory is.`
}

// Run lists the nodes of the cluster.
func (c *nodeListCmd) Run(ctx context.Context, p Process) error {
	l, err := c.Settings.load(p)
	if err != nil {
		return err
	}
	direct := false
	for key := range c.Settings.values() {
		direct = direct || key != "data-dir"
	}
	lister, done, err := app.OpenNodes(ctx, l.Config, app.Options{Version: version()}, direct)
	if err != nil {
		return err
	}
	all, err := lister.Nodes(ctx)
	switch {
	case err != nil:
	case c.JSON:
		err = printJSON(p.Stdout, all)
	default:
		err = printNodes(p.Stdout, all.Nodes)
	}
	return finish(p, err, done)
}

type nodeWeightCmd struct {
	Settings settings `embed:""`
	JSON     bool     `name:"json" help:"Print JSON."`
	Weight   int      `arg:"" help:"Share of the traffic relative to the other nodes of the zone, 0 to 1000. 0: only while no other node answers."`
}

// Help implements kong.HelpProvider.
func (nodeWeightCmd) Help() string {
	return `The weight is published at once, and clients follow when they next read the directory (clients of this project: every 2s). It lasts until the process ends; the next one has node.weight again.

To shift traffic away from a node in steps: leaf node weight 50, leaf node weight 10, leaf node weight 0, then leaf drain.`
}

// Run changes the weight of the running node.
func (c *nodeWeightCmd) Run(ctx context.Context, p Process) error {
	return withNode(ctx, p, &c.Settings, func(b manage.Backend) error {
		n, err := b.SetWeight(ctx, c.Weight)
		switch {
		case err != nil:
			return err
		case c.JSON:
			return printJSON(p.Stdout, n)
		}
		_, err = fmt.Fprintf(p.Stdout, "node %s has weight %d\n", n.ID, n.Weight)
		return err
	})
}

func printNodes(w io.Writer, nodes []manage.Node) error {
	var table bytes.Buffer
	tw := tabwriter.NewWriter(&table, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "NODE\tZONE\tWEIGHT\tHTTP\tGRPC\tRESP\tNOTE")
	for _, n := range nodes {
		note := ""
		if n.Own {
			note = "this node"
		}
		fmt.Fprintf(tw, "%s\t%s\t%d\t%s\t%s\t%s\t%s\n", n.ID, printable(orDash(n.Zone)), n.Weight, orDash(n.HTTP), orDash(n.GRPC), orDash(n.RESP), note)
	}
	if err := tw.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(table.String()) {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}
