package cli

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/app"
	"github.com/leaf-idgen/leaf/internal/idtime"
	"github.com/leaf-idgen/leaf/internal/manage"
)

// span prints the range of the IDs of a time.
func (c *decodeCmd) span(ctx context.Context, p Process) error {
	if c.From == "" || c.ID != nil {
		return &usageError{errors.New("the IDs of a time need --from, perhaps --to, and no ID"), "leaf decode --help"}
	}
	var to time.Time
	from, err := idtime.ParseTime("--from", c.From)
	if err == nil && c.To != "" {
		to, err = idtime.ParseTime("--to", c.To)
	}
	if err != nil {
		return err
	}
	layout, err := c.layout(ctx, p)
	if err != nil {
		return err
	}
	ids, err := app.IDsOf(layout, from, to)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(p.Stdout, ids)
	}
	tw := tabwriter.NewWriter(p.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintf(tw, "lo\t%d\nhi\t%d\nlayout\t%s\n", ids.Lo, ids.Hi, ids.Layout)
	return tw.Flush()
}

// layout returns the layout that is asked about.
func (c *decodeCmd) layout(ctx context.Context, p Process) (string, error) {
	if c.Layout != "" {
		return c.Layout, nil
	}
	l, err := c.Settings.load(p)
	if err != nil {
		return "", err
	}
	if l.Endpoint == "" {
		return l.Snowflake.Layout, nil
	}
	var layout string
	err = with(ctx, p, c, func(b manage.Backend) error {
		st, err := manage.Ask(ctx, b, manage.GetStatus{})
		if layout = st.Layout; err == nil && layout == "" {
			return fmt.Errorf("%w: the node does not say which layout it has, because its version is older; give --layout", leaf.ErrBadRequest)
		}
		return err
	})
	return layout, err
}
