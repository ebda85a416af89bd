package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/idtime"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/number"
	"github.com/leaf-idgen/leaf/segment"
)

type decodeCmd struct {
	storeFlags
	ID     *string `arg:"" optional:"" help:"An ID of snowflake mode, or with --tag or --format a text. Without it the layouts are shown."`
	Tag    string  `placeholder:"TAG" help:"Print the ID of a text that the format of this tag has written (leaf next --format text)."`
	Format string  `placeholder:"TEMPLATE" help:"Print the ID of a text that this template has written; no node and no database is asked."`
	From   string  `placeholder:"TIME" help:"Print the range of the IDs of a time that begins here: 2026-01-31T12:00:00Z, or milliseconds since 1970."`
	To     string  `placeholder:"TIME" help:"The end of the time; it does not belong to it. (default: the end of the unit that --from lies in)"`
	Layout string  `placeholder:"LAYOUT" help:"Layout of the ID: leaf, dc, seconds, js53, or fields such as leaf,epoch=1700000000000. (default: that of the node at --endpoint; without an endpoint snowflake.layout of the configuration)"`
	JSON   bool    `name:"json" help:"Print JSON; 64-bit numbers are strings."`
}

// Help implements kong.HelpProvider.
func (decodeCmd) Help() string {
	return `Shows when, by which worker and as which number of its unit of time an ID was made. A wrong layout gives wrong answers: with --endpoint the node there says which one it has; otherwise no node and no registry is asked.

  leaf decode 1541815603606036480
  leaf decode 1541815603606036480 --layout dc
  leaf decode                 the layouts that have a name
  leaf decode --layout dc     one layout

With --from it prints the range of the IDs whose unit of time overlaps a time, of all workers, issued or not: lo is the first one, hi the first one behind. The time must lie within the layout.

  leaf decode --from 2026-01-31T00:00:00Z --to 2026-02-01T00:00:00Z
  leaf decode --from 1769860800000

With --tag or --format it reads a number that people read back into its ID (docs/NUMBERS.md). A wrong check digit is an error. With --tag it asks the node, or the database, for the format of the tag.

  leaf decode --tag invoice INV-00001234
  leaf decode --format 'INV-{seq:08}' INV-00001234`
}

// Run prints an ID or layouts.
func (c *decodeCmd) Run(ctx context.Context, p Process) error {
	if c.Tag != "" || c.Format != "" {
		return c.text(ctx, p)
	}
	if c.From != "" || c.To != "" {
		return c.span(ctx, p)
	}
	if c.ID == nil {
		return c.layouts(p.Stdout)
	}
	id, err := idtime.ParseID("ID", *c.ID)
	if err != nil {
		return err
	}
	layout, err := c.layout(ctx, p)
	if err != nil {
		return err
	}
	d, err := app.Decode(layout, id, time.Now())
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(p.Stdout, d)
	}
	if d.Warning != "" {
		fmt.Fprintf(p.Stderr, "leaf: warning: %s\n", d.Warning)
	}
	tw := tabwriter.NewWriter(p.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintf(tw, "id\t%d\ntime\t%s\nunix_ms\t%d\n", d.ID, d.Time.Format(timeFormat), d.UnixMilli)
	if d.Datacenter != nil {
		fmt.Fprintf(tw, "datacenter\t%d\n", *d.Datacenter)
	}
	fmt.Fprintf(tw, "worker\t%d\nsequence\t%d\nlayout\t%s\n", d.Worker, d.Sequence, d.Layout)
	return tw.Flush()
}

// text prints the ID of a text.
func (c *decodeCmd) text(ctx context.Context, p Process) error {
	switch {
	case c.ID == nil:
		return &usageError{errors.New("--tag and --format need a text, such as INV-00001234"), "leaf decode --help"}
	case c.Tag != "" && c.Format != "", c.Layout != "", c.From != "", c.To != "":
		return &usageError{errors.New("only one of --tag, --format, --layout and --from says what is asked"), "leaf decode --help"}
	}
	options := segment.Options{Format: c.Format}
	if t, err := number.ParseTemplate(c.Format); err == nil {
		options.Period = t.Period()
	}
	template, err := options.Template(c.Tag)
	if c.Tag != "" {
		err = with(ctx, p, c, func(b manage.Backend) (err error) { template, err = templateOf(ctx, b, c.Tag); return err })
	}
	if err != nil {
		return err
	}
	id, err := template.Parse(*c.ID)
	if err != nil {
		return fmt.Errorf("%w: %w", leaf.ErrBadRequest, err)
	}
	if c.JSON {
		shown := map[string]string{"id": strconv.FormatInt(id, 10)}
		if period := template.Period(); period != "" {
			shown[period] = time.Unix(id>>number.PeriodBits*86400, 0).UTC().Format(time.DateOnly)
			shown["sequence"] = strconv.FormatInt(template.Sequence(id), 10)
		}
		return printJSON(p.Stdout, shown)
	}
	_, err = fmt.Fprintln(p.Stdout, id)
	return err
}

// timeFormat shows a moment with the milliseconds that matter for an ID.
const timeFormat = "2006-01-02T15:04:05.000Z07:00"

func (c *decodeCmd) layouts(w io.Writer) error {
	list, err := app.Layouts(c.Layout)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(w, list)
	}
	tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(tw, "LAYOUT\tBITS\tUNTIL\tDATACENTRES\tWORKERS\tIDS PER UNIT\tFIELDS")
	for _, l := range list {
		fmt.Fprintf(tw, "%s\t%d\t%s\t%d\t%d\t%d per %s\t%s\n", l.Name, l.Bits, l.End.Format(time.DateOnly), l.Datacenters, l.Workers, l.PerUnit, l.Unit, l.Fields)
	}
	return tw.Flush()
}
