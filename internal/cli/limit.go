package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/manage"
)

// limitGroup are the commands about limits.
type limitGroup struct {
	List  limitListCmd  `cmd:"" help:"List the limits of tags and clients."`
	Set   limitSetCmd   `cmd:"" help:"Limit a tag or a client, or switch it off. What is not named stays as it is."`
	Clear limitClearCmd `cmd:"" help:"Remove the limit of a tag or a client."`
}

type limitListCmd struct {
	storeFlags
	jsonFlag
}

// Help implements kong.HelpProvider.
func (limitListCmd) Help() string {
	return `Each node enforces the limits by itself, so that n nodes let n times as much through. With a running node, TODAY is what it issued under the quota since midnight (UTC) or its start, and REFUSED the requests that it refused because of the limit.`
}

// Run lists all limits.
func (c *limitListCmd) Run(ctx context.Context, p Process) error {
	return ask(ctx, p, c, manage.ListLimits{}, printLimits)
}

// limitTarget names the tag or the clients that a command is about.
type limitTarget struct {
	Tag    string  `arg:"" optional:"" help:"Name of the tag."`
	Client *string `placeholder:"NAME" help:"A client in place of a tag: the name in its certificate, or what it calls itself. An empty NAME stands for all clients without one."`
}

func (t limitTarget) set(change manage.LimitChange) manage.Request[*manage.Catalog, manage.Limit] {
	if t.Client != nil {
		return manage.SetClientLimit{Name: *t.Client, LimitChange: change}
	}
	return manage.SetTagLimit{Name: t.Tag, LimitChange: change}
}

func (t limitTarget) check() error {
	if (t.Tag == "") == (t.Client == nil) {
		return fmt.Errorf("%w: name a tag or --client NAME, and not both", leaf.ErrBadRequest)
	}
	return nil
}

type limitSetCmd struct {
	storeFlags
	jsonFlag
	limitTarget
	Rate    *int64 `placeholder:"N" help:"IDs per second, of each node; up to one second's worth at once, and a larger batch after a second without any. 0 for no limit."`
	Quota   *int64 `placeholder:"N" help:"IDs per day (UTC), of each node. 0 for no limit."`
	Block   bool   `xor:"switch" help:"Issue nothing at all."`
	Unblock bool   `xor:"switch" help:"Issue again."`
}

// Help implements kong.HelpProvider.
func (limitSetCmd) Help() string {
	return `The change takes effect at once on the node that makes it, and on the others within limit.refresh (2 s). Requests above a limit get 429 over HTTP, RESOURCE_EXHAUSTED over gRPC and THROTTLED over the Redis protocol, with the time after which to try again; what is blocked gets 403, PERMISSION_DENIED and BLOCKED.

Limits of tags hold in segment mode; those of clients in both modes.`
}

// Run changes a limit.
func (c *limitSetCmd) Run(ctx context.Context, p Process) error {
	change := manage.LimitChange{Rate: c.Rate, Quota: c.Quota}
	if c.Block || c.Unblock {
		change.Blocked = &c.Block
	}
	if err := c.check(); err != nil {
		return err
	}
	if change == (manage.LimitChange{}) {
		return fmt.Errorf("%w: nothing to change; see leaf limit set --help", leaf.ErrBadRequest)
	}
	return ask(ctx, p, c, c.set(change), printLimit)
}

type limitClearCmd struct {
	storeFlags
	jsonFlag
	limitTarget
}

// Run removes the limit of a tag or client.
func (c *limitClearCmd) Run(ctx context.Context, p Process) error {
	if err := c.check(); err != nil {
		return err
	}
	none, off := int64(0), false
	return ask(ctx, p, c, c.set(manage.LimitChange{Rate: &none, Quota: &none, Blocked: &off}), printLimit)
}

func printLimit(w io.Writer, l manage.Limit) error {
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintf(tw, "%s\t%s\n", l.Kind, limitName(l))
	fmt.Fprintf(tw, "rate\t%s\n", per(l.Rate, "second"))
	fmt.Fprintf(tw, "quota\t%s\n", per(l.Quota, "day"))
	if l.Store != "" {
		fmt.Fprintf(tw, "store\t%s\n", l.Store)
	}
	fmt.Fprintf(tw, "state\t%s\n", limitState(l))
	return tw.Flush()
}

// limitName is the name of a client without one in words.
func limitName(l manage.Limit) string {
	if l.Kind == manage.LimitOfClient && l.Name == "" {
		return "(all without a name)"
	}
	return printable(l.Name)
}

func per(n int64, unit string) string {
	if n == 0 {
		return "no limit"
	}
	return strconv.FormatInt(n, 10) + " per " + unit + " and node"
}

func limitState(l manage.Limit) string {
	switch {
	case l.Blocked:
		return "blocked"
	case l.Rate == 0 && l.Quota == 0:
		return "no limit"
	}
	return "limited"
}

func printLimits(w io.Writer, all manage.Limits) error {
	if len(all.Limits) == 0 {
		if _, err := fmt.Fprintln(w, "no limits; leaf limit set makes one"); err != nil {
			return err
		}
	} else if err := printLimitTable(w, all); err != nil {
		return err
	}
	if all.Node == nil {
		return nil
	}
	n := all.Node
	_, err := fmt.Fprintf(w, "\nthis node refused %d requests: %d without the token, %d blocked, %d above a rate, %d above a quota, %d because too many waited\n",
		n.Unauthenticated+n.Blocked+n.Rate+n.Quota+n.Segment.Rejected+n.Snowflake.Rejected, n.Unauthenticated, n.Blocked, n.Rate, n.Quota, n.Segment.Rejected+n.Snowflake.Rejected)
	_, err2 := fmt.Fprintf(w, "waiting for IDs now: %d in segment mode (of %d that may), %d in snowflake mode (of %d)\n",
		n.Segment.Waiting, n.Segment.Limit, n.Snowflake.Waiting, n.Snowflake.Limit)
	return errors.Join(err, err2)
}

func printLimitTable(w io.Writer, all manage.Limits) error {
	stores := false
	for _, l := range all.Limits {
		stores = stores || l.Store != ""
	}
	var rows [][]string
	row := func(store string, counts []string, cells ...string) {
		if stores {
			cells = append(cells, store)
		}
		if all.Node != nil {
			cells = append(cells, counts...)
		}
		rows = append(rows, cells)
	}
	number := func(n int64) string {
		if n == 0 {
			return "-"
		}
		return strconv.FormatInt(n, 10)
	}
	row("STORE", []string{"TODAY", "REFUSED"}, "OF", "NAME", "PER SECOND", "PER DAY", "STATE")
	for _, l := range all.Limits {
		today := "-"
		if l.Quota != 0 {
			today = strconv.FormatInt(l.Used, 10)
		}
		row(l.Store, []string{today, strconv.FormatInt(l.Refused, 10)}, l.Kind, limitName(l), number(l.Rate), number(l.Quota), limitState(l))
	}
	return printTable(w, rows)
}
