package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/manage"
)

// workerGroup are the commands about worker IDs.
type workerGroup struct {
	List         workerListCmd         `cmd:"" help:"List the worker IDs that the registry knows."`
	Show         workerShowCmd         `cmd:"" help:"Show one worker ID."`
	Release      workerReleaseCmd      `cmd:"" help:"Take a worker ID from its owner."`
	Init         workerInitCmd         `cmd:"" help:"Declare a registry new, so that its first node need not wait."`
	ConfirmClock workerConfirmClockCmd `cmd:"" help:"Tell the running node that its clock is right after a jump."`
}

type workerListCmd struct {
	registryFlags
	jsonFlag
}

// Help implements kong.HelpProvider.
func (workerListCmd) Help() string {
	return `STATE is running (heard of within a lease), held (not heard of, and its time bound has not passed), expired (its time bound has passed), released or unreadable. ISSUES BELOW is the bound T: the last owner issued nothing at or above it, and the next one starts there; - stands for a number that issued nothing, and unknown for a static one, or one whose record cannot be read: its owner may have had a clock that was ahead.`
}

// Run lists all worker IDs that the registry knows.
func (c *workerListCmd) Run(ctx context.Context, p Process) error {
	return ask(ctx, p, c, manage.ListWorkers{}, printWorkers)
}

type workerShowCmd struct {
	registryFlags
	jsonFlag
	Worker int64 `arg:"" help:"Worker ID."`
}

// Run shows one worker ID.
func (c *workerShowCmd) Run(ctx context.Context, p Process) error {
	return with(ctx, p, c, func(b manage.Backend) error {
		all, err := manage.Ask(ctx, b, manage.ListWorkers{})
		if err != nil {
			return err
		}
		for _, w := range all.Workers {
			if w.Number == c.Worker {
				if c.JSON {
					return printJSON(p.Stdout, w)
				}
				return printWorker(p.Stdout, all, w)
			}
		}
		if c.Worker < 0 || c.Worker > all.Last {
			return leaf.BadField("worker", c.Worker, fmt.Sprintf("must be 0 to %d, the worker IDs of the layout", all.Last))
		}
		return manage.NeverUsed(c.Worker)
	})
}

type workerReleaseCmd struct {
	registryFlags
	jsonFlag
	Worker int64 `arg:"" help:"Worker ID."`
}

// Help implements kong.HelpProvider.
func (workerReleaseCmd) Help() string {
	return `Takes the worker ID from its owner. Use it when the owner is gone for good and its number is needed before the time bound has passed. An owner that still runs notices the loss at its next renewal, stops issuing and claims a number again by itself; with the registry zookeeper it gets the same one back, and waits until the time bound has passed. No ID repeats: the next owner starts at the time bound of the last one.`
}

// Run releases a worker ID.
func (c *workerReleaseCmd) Run(ctx context.Context, p Process) error {
	return tell(ctx, p, c, manage.ReleaseWorker{Number: c.Worker}, map[string]any{"worker": c.Worker, "released": true},
		fmt.Sprintf("released worker ID %d; its next owner starts at the time that leaf worker show %[1]d calls \"issues below\"", c.Worker))
}

type workerInitCmd struct {
	registryFlags
	jsonFlag
}

// Help implements kong.HelpProvider.
func (workerInitCmd) Help() string {
	return `Declares the registry new. Without it the first node that claims a number in an empty registry waits before it issues (lease, horizon and margin: 620 s by default), because no node can tell an empty registry from one that was wiped while nodes still run. Do not run it for a registry that lost its data, or that takes the place of another one, such as that of Java servers.

A registry that is in use already by the same namespace and layout is left as it is, and so is one that has records of worker IDs and no namespace: it was used, and its first node waits.`
}

// Run declares the registry new.
func (c *workerInitCmd) Run(ctx context.Context, p Process) error {
	return with(ctx, p, c, func(b manage.Backend) error {
		all, err := manage.Ask(ctx, b, manage.ListWorkers{})
		if err != nil {
			return err
		}
		if err := manage.Tell(ctx, b, manage.InitWorkers{}); err != nil {
			return err
		}
		used := len(all.Workers)
		if c.JSON {
			return printJSON(p.Stdout, map[string]any{"initialised": true, "used": used})
		}
		text := "the registry is ready"
		if used > 0 {
			text = fmt.Sprintf("the registry is in use already (worker IDs with a record: %d); a node that waits there goes on waiting", used)
		}
		_, err = fmt.Fprintln(p.Stdout, text)
		return err
	})
}

type workerConfirmClockCmd struct {
	nodeFlags
	jsonFlag
}

// Help implements kong.HelpProvider.
func (workerConfirmClockCmd) Help() string {
	return `A running node does not believe a clock that jumps ahead: a jump by years would use up its worker ID for that time. It goes on by itself when the clock comes back, or when other nodes confirm it. If there are none, and the clock is right now, say so with this command.`
}

// Run confirms the clock of the running node.
func (c *workerConfirmClockCmd) Run(ctx context.Context, p Process) error {
	return ask(ctx, p, c, manage.ConfirmClock{}, func(w io.Writer, reply manage.ClockReply) error {
		_, err := fmt.Fprintf(w, "confirmed %s\n", reply.Now.UTC().Format(timeFormat))
		return err
	})
}

func printWorkers(w io.Writer, all manage.Workers) error {
	rows := [][]string{{"WORKER", "ADDRESS", "STATE", "ISSUES BELOW", "NOTE"}}
	for _, r := range all.Workers {
		rows = append(rows, []string{strconv.FormatInt(r.Number, 10), orDash(r.Address), r.State, issuesBelow(all, r), ownNote(r.Own)})
	}
	return printTable(w, rows)
}

func printWorker(w io.Writer, all manage.Workers, r manage.Worker) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(tw, "worker\t%d\nregistry\t%s (%s)\naddress\t%s\nstate\t%s\nfrom\t%s\nissues below\t%s\n",
		r.Number, all.Registry, all.Kind, orDash(r.Address), r.State, moment(r.Floor), issuesBelow(all, r))
	if note := ownNote(r.Own); note != "" {
		fmt.Fprintf(tw, "note\t%s\n", note)
	}
	return tw.Flush()
}

func ownNote(own bool) string {
	if own {
		return "this node"
	}
	return ""
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return printable(text)
}

// issuesBelow shows T, which must not look like that of a number that has issued nothing where no registry can tell it.
func issuesBelow(all manage.Workers, r manage.Worker) string {
	if r.State == manage.WorkerUnreadable || all.Registry == config.RegistryStatic {
		return "unknown"
	}
	return moment(r.Bound)
}

// moment shows Unix milliseconds, - for none.
func moment(unixMilli int64) string {
	if unixMilli == 0 {
		return "-"
	}
	return time.UnixMilli(unixMilli).UTC().Format(timeFormat)
}
