package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/segment"
)

// backendFlags are the flags of a command that needs a Backend.
type backendFlags struct {
	Settings settings `embed:""`
	JSON     bool     `name:"json" help:"Print JSON; 64-bit numbers are strings."`
}

// with calls f with the running node, or with the opened stores.
func (b *backendFlags) with(ctx context.Context, p Process, f func(manage.Backend) error) error {
	l, err := b.Settings.load(p)
	if err != nil {
		return err
	}
	given := b.Settings.values()
	direct := given["store"] != nil || given["store-file"] != nil
	warn := func(text string) { fmt.Fprintf(p.Stderr, "leaf: warning: %s\n", text) }
	backend, done, err := app.OpenBackend(ctx, l.Config, app.Options{Version: version(), Warn: warn}, direct)
	if err != nil {
		return err
	}
	return finish(p, f(backend), done)
}

// finish calls done after a command and returns what the command said.
func finish(p Process, err error, done func() error) error {
	switch ending := done(); {
	case err != nil:
		return errors.Join(err, ending)
	case ending != nil:
		// The command itself was done: what follows can only lose unused IDs.
		fmt.Fprintf(p.Stderr, "leaf: warning: %v\n", ending)
	}
	return nil
}

type tagListCmd struct{ backendFlags }

// Run lists all tags.
func (c *tagListCmd) Run(ctx context.Context, p Process) error {
	return c.with(ctx, p, func(b manage.Backend) error {
		tags, err := b.Tags(ctx)
		if err != nil {
			return err
		}
		if c.JSON {
			return printJSON(p.Stdout, tags)
		}
		return printTags(p.Stdout, tags)
	})
}

type tagShowCmd struct {
	backendFlags
	Tag string `arg:"" help:"Name of the tag."`
}

// Run shows one tag.
func (c *tagShowCmd) Run(ctx context.Context, p Process) error {
	return c.with(ctx, p, func(b manage.Backend) error {
		tag, err := b.Tag(ctx, c.Tag)
		if err != nil {
			return err
		}
		return printTag(p.Stdout, c.JSON, tag)
	})
}

type tagCreateCmd struct {
	backendFlags
	Tag         string `arg:"" help:"Name of the tag: 1 to 128 characters."`
	Start       int64  `default:"1" placeholder:"N" help:"First ID. To take over from another numbering, its highest number + 1. (default 1)"`
	Step        int64  `default:"1000" placeholder:"N" help:"Length of a range: how many IDs one write to the database reserves. Advice: the IDs needed in ten minutes at peak. (default 1000; 1 to 1073741824)"`
	Description string `placeholder:"TEXT" help:"Text for people, up to 256 characters."`
	newOptions
}

// newOptions are segment.Options as flags.
type newOptions struct {
	MinStep   int64 `placeholder:"N" help:"Lower bound of the dynamic step. (default: the step)"`
	MaxStep   int64 `placeholder:"N" help:"Upper bound of the dynamic step. (default: segment.max-step of the node)"`
	FixedStep bool  `help:"Every range has exactly the step's length."`
}

// Run creates a tag.
func (c *tagCreateCmd) Run(ctx context.Context, p Process) error {
	return c.with(ctx, p, func(b manage.Backend) error {
		tag, err := b.CreateTag(ctx, segment.NewRow{
			Tag: c.Tag, Start: c.Start, Step: c.Step, Description: c.Description, Options: segment.Options(c.newOptions),
		})
		if err != nil {
			return err
		}
		return printTag(p.Stdout, c.JSON, tag)
	})
}

type tagSetCmd struct {
	backendFlags
	Tag string `arg:"" help:"Name of the tag."`
	tagChange
}

// tagChange is segment.Change as flags.
type tagChange struct {
	MaxID       *int64  `name:"max-id" placeholder:"N" help:"End of the ranges handed out so far. It can only be raised; ranges that nodes hold in memory are still used up."`
	Step        *int64  `placeholder:"N" help:"Length of a range, from the next load on. (1 to 1073741824)"`
	Description *string `placeholder:"TEXT" help:"Text for people, up to 256 characters."`
	MinStep     *int64  `placeholder:"N" help:"Lower bound of the dynamic step; 0 for the step."`
	MaxStep     *int64  `placeholder:"N" help:"Upper bound of the dynamic step; 0 for the limit of the node."`
	FixedStep   *bool   `negatable:"" help:"Every range has exactly the step's length."`
}

// Run changes a tag.
func (c *tagSetCmd) Run(ctx context.Context, p Process) error {
	change := segment.Change(c.tagChange)
	if change == (segment.Change{}) {
		return fmt.Errorf("%w: nothing to change; see leaf tag set --help", leaf.ErrBadRequest)
	}
	return c.with(ctx, p, func(b manage.Backend) error {
		tag, err := b.SetTag(ctx, c.Tag, change)
		if err != nil {
			return err
		}
		return printTag(p.Stdout, c.JSON, tag)
	})
}

type tagDeleteCmd struct {
	backendFlags
	Tag string `arg:"" help:"Name of the tag."`
	Yes bool   `help:"Do it. Without this flag nothing is deleted."`
}

// Help implements kong.HelpProvider.
func (tagDeleteCmd) Help() string {
	return `The row and its options are deleted, and with them the only record of the numbers in use. If the tag is ever created again, --start must lie above all of them; a node refuses a start below its own ranges, but does not know those of other nodes.`
}

// Run deletes a tag.
func (c *tagDeleteCmd) Run(ctx context.Context, p Process) error {
	if !c.Yes {
		return fmt.Errorf("%w: tag %q is not deleted: with its row goes the record of the numbers in use; add --yes to do it", leaf.ErrBadRequest, c.Tag)
	}
	return c.with(ctx, p, func(b manage.Backend) error {
		if err := b.DeleteTag(ctx, c.Tag); err != nil {
			return err
		}
		if c.JSON {
			return printJSON(p.Stdout, map[string]any{"tag": c.Tag, "deleted": true})
		}
		_, err := fmt.Fprintf(p.Stdout, "deleted %s\n", printable(c.Tag))
		return err
	})
}

type tagRepairCmd struct {
	backendFlags
	Tag   string `arg:"" help:"Name of the tag."`
	Above int64  `placeholder:"N" help:"Issue nothing at or below N, and leave out the nodes that do not answer: N lies above every number of the tag that is in use or in memory anywhere. (default: what the nodes say; all of them must answer)"`
	Plan  bool   `help:"Only show what the repair goes by and what comes of it; change nothing."`
}

// Help implements kong.HelpProvider.
func (tagRepairCmd) Help() string {
	return `A node latches a tag when its database hands out numbers that the node has used before: a restored backup, a failover that lost commits, a row that was deleted and created again. It tells the other nodes, and all of them stop the tag.

Start the nodes that are stopped, and run this command once, on any one node. It asks every node that uses the tag's database for its highest number, moves the row above all of them, and releases the tag on every node. Ranges that nodes still hold below that are dropped. It never lowers anything and can be repeated. A tag whose row was deleted is released too: the nodes then refuse a new row of that name below its numbers.

It changes nothing if a node does not answer. Nodes that crashed count for 24 hours. If one is gone for good with its data directory, find the highest number of the tag in your own tables. Add three times the largest range a node can take (segment.max-step, or the row's step if that is larger), and what clients hold in caches, batches and open transactions, which no table has yet. Numbers cost nothing: add generously, and give the sum as --above.

It prints its plan: what the row says, what each node answered, the cluster fence if there is one, the number above which IDs go on, and the first ID. With --plan it prints nothing else and changes nothing, and says why a repair would be refused.

It cannot ask a node that was stopped cleanly, nor a Java server: if one of those may have issued the highest number, start the node first, or give such a sum as --above.`
}

// Run repairs a tag.
func (c *tagRepairCmd) Run(ctx context.Context, p Process) error {
	return c.with(ctx, p, func(b manage.Backend) error {
		if c.Plan {
			plan, err := b.PlanRepair(ctx, c.Tag, c.Above)
			if err != nil {
				return err
			}
			return printRepairPlan(p.Stdout, c.JSON, plan)
		}
		repair, err := b.RepairTag(ctx, c.Tag, c.Above)
		switch {
		case err != nil:
			return err
		case c.JSON:
			return printJSON(p.Stdout, repair)
		}
		if len(repair.Plan.Nodes) > 0 { // a node of an earlier version tells of none
			if err := printRepairPlan(p.Stdout, false, repair.Plan); err != nil {
				return err
			}
			fmt.Fprintln(p.Stdout)
		}
		return printTag(p.Stdout, false, repair.Tag)
	})
}
