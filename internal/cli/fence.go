package cli

import (
	"context"
	"fmt"

	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/segment"
)

// fenceGroup are the commands about the fence of a node.
type fenceGroup struct {
	Rebuild fenceRebuildCmd `cmd:"" help:"Make the fence files of a stopped node anew, with every tag latched."`
}

type fenceRebuildCmd struct {
	Settings settings `embed:"" keys:"all"`
}

// Help implements kong.HelpProvider.
func (fenceRebuildCmd) Help() string {
	return `For a node that refuses to start because its fence files are gone, spoilt or too old. The node must be down; give the command the node's own configuration. Every tag is latched: the node then starts, and issues no ID of a tag before that tag is repaired.`
}

// Run makes the fence files anew.
func (c *fenceRebuildCmd) Run(ctx context.Context, p Process) error {
	l, err := c.Settings.load(p)
	if err != nil {
		return err
	}
	tags, err := app.RebuildFence(ctx, l.Config)
	if err != nil {
		return err
	}
	if len(tags) == 0 {
		fmt.Fprintf(p.Stdout, "The fence file is made anew. The database has no tag. For each tag that it had, run leaf tag create TAG --start NUMBER, with %s. Then start the node.\n", segment.AboveAll)
		return nil
	}
	fmt.Fprintf(p.Stdout, "The fence file is made anew. Start the node. It issues no ID of these %d tags before each was repaired: see leaf tag repair --help; the rows of a sequence are repaired together: leaf sequence repair NAME --all. If a backup was loaded into the database since the node took ranges, or it lost commits, the node counts as one that is gone with its data directory: then each repair needs --above\n", len(tags))
	for _, tag := range tags {
		fmt.Fprintln(p.Stdout, tag)
	}
	return nil
}
