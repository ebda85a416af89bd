package cli

import (
	"context"
	"fmt"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
)

// tagGroup are the commands about tags.
type tagGroup struct {
	List   tagListCmd   `cmd:"" help:"List all tags."`
	Show   tagShowCmd   `cmd:"" help:"Show one tag."`
	Create tagCreateCmd `cmd:"" help:"Create a tag."`
	Set    tagSetCmd    `cmd:"" help:"Change a tag. What is not named stays as it is."`
	Delete tagDeleteCmd `cmd:"" help:"Delete a tag."`
	Repair tagRepairCmd `cmd:"" help:"Release a tag that is latched because its store went backwards."`
}

type tagListCmd struct {
	storeFlags
	jsonFlag
}

// Run lists all tags.
func (c *tagListCmd) Run(ctx context.Context, p Process) error {
	return ask(ctx, p, c, manage.ListTags{}, printTags)
}

type tagShowCmd struct {
	storeFlags
	jsonFlag
	Tag string `arg:"" help:"Name of the tag."`
}

// Run shows one tag.
func (c *tagShowCmd) Run(ctx context.Context, p Process) error {
	return ask(ctx, p, c, manage.GetTag{Name: c.Tag}, printTag)
}

type tagCreateCmd struct {
	storeFlags
	jsonFlag
	Tag         string `arg:"" help:"Name of the tag: 1 to 128 characters."`
	Start       int64  `default:"1" placeholder:"N" help:"First ID. To take over from another numbering, its highest number + 1. (default 1)"`
	Step        int64  `default:"1000" placeholder:"N" help:"Length of a range: how many IDs one write to the database reserves. Advice: the IDs needed in ten minutes at peak. (default 1000; 1 to 1073741824)"`
	Description string `placeholder:"TEXT" help:"Text for people, up to 256 characters."`
	newOptions
}

// Run creates a tag.
func (c *tagCreateCmd) Run(ctx context.Context, p Process) error {
	row := segment.NewRow{Tag: c.Tag, Start: c.Start, Step: c.Step, Description: c.Description, Options: segment.Options(c.newOptions)}
	return ask(ctx, p, c, manage.CreateTag{NewRow: row}, printTag)
}

type tagSetCmd struct {
	storeFlags
	jsonFlag
	Tag string `arg:"" help:"Name of the tag."`
	tagChange
}

// Run changes a tag.
func (c *tagSetCmd) Run(ctx context.Context, p Process) error {
	change := segment.Change(c.tagChange)
	if change == (segment.Change{}) {
		return fmt.Errorf("%w: nothing to change; see leaf tag set --help", leaf.ErrBadRequest)
	}
	return ask(ctx, p, c, manage.SetTag{Name: c.Tag, Change: change}, printTag)
}

type tagDeleteCmd struct {
	storeFlags
	jsonFlag
	Tag string `arg:"" help:"Name of the tag."`
	Yes bool   `help:"Do it. Without this flag nothing is deleted."`
}

// Help implements kong.HelpProvider.
func (tagDeleteCmd) Help() string {
	return `The row and its options are deleted. Where its numbers end is kept in the table leaf_repair_node: leaf tag create refuses a start below that, on every node and with --store, so that no number is issued twice. Without that table nothing is deleted; leaf schema apply makes it.

The end is kept for good. A tag that was created with a start that is too high cannot be created again with a lower one, because a node may have issued from it: use another name, a column of its own for its IDs, which can be equal to those of the first tag, and other letters in its format.`
}

// Run deletes a tag.
func (c *tagDeleteCmd) Run(ctx context.Context, p Process) error {
	if !c.Yes {
		return fmt.Errorf("%w: tag %q is not deleted: nodes then answer that it is unknown, and it can be created again only above its numbers; add --yes to do it", leaf.ErrBadRequest, c.Tag)
	}
	return tell(ctx, p, c, manage.DeleteTag{Name: c.Tag}, map[string]any{"tag": c.Tag, "deleted": true}, "deleted "+printable(c.Tag))
}

type tagRepairCmd struct {
	storeFlags
	jsonFlag
	Tag   string `arg:"" help:"Name of the tag."`
	Above int64  `placeholder:"N" help:"Issue nothing at or below N, and leave out the nodes that do not answer: N lies above every number of the tag that is in use or in memory anywhere. (default: what the nodes say; all of them must answer)"`
	Plan  bool   `help:"Only show what the repair goes by and what comes of it; change nothing."`
}

// Help implements kong.HelpProvider.
func (tagRepairCmd) Help() string {
	return `A node latches a tag when its database hands out numbers that the node has used before: a restored backup, a failover that lost commits, a row that was deleted and created again. It tells the other nodes, and all of them stop the tag.

Start the nodes that are stopped, and run this command once, on any one node. It asks every node that uses the tag's database for its highest number, moves the row above all of them, and releases the tag on every node. Ranges that nodes still hold below that are dropped. It never lowers anything and can be repeated. A tag whose row was deleted is released too: the nodes then refuse a new row of that name below its numbers.

It changes nothing if a node does not answer. Nodes that crashed count for 24 hours. If one is gone for good with its data directory, find the highest number of the tag in your own tables. Add ` + segment.Margin + `. No table has that yet. Numbers cost nothing: add generously, and give the sum as --above.

It prints its plan: what the row says, what each node answered, the cluster fence if there is one, the number above which IDs go on, and the first ID. With --plan it prints nothing else and changes nothing, and says why a repair would be refused.

It cannot ask a node that was stopped cleanly: if one may have issued the highest number, start it first, or give such a sum as --above. Nor can it ask Java servers: if they have taken ranges, stop them first, and give such a sum.`
}

// Run repairs a tag.
func (c *tagRepairCmd) Run(ctx context.Context, p Process) error {
	stop := sayLater(p.Stderr, "asking every node of the database for its highest number. This takes about 4 s, so that nodes "+
		"which a loss of commits took off the list can enter it again, and some seconds more for each node that is slow to answer")
	defer stop()
	if c.Plan {
		return ask(ctx, p, c, manage.PlanRepair{Name: c.Tag, Above: c.Above}, printRepairPlan)
	}
	return ask(ctx, p, c, manage.RepairTag{Name: c.Tag, Above: c.Above}, printRepair)
}
