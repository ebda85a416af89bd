package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/manage"
)

type nextCmd struct {
	storeFlags
	jsonFlag
	Tag       string `arg:"" optional:"" help:"Name of the tag. Not with --snowflake."`
	Count     int    `name:"count" short:"n" default:"1" placeholder:"N" help:"How many. (default 1; 1 to 100000)"`
	Snowflake bool   `help:"IDs of snowflake mode. Only a running node has a worker ID for them."`
}

// Run issues IDs.
func (c *nextCmd) Run(ctx context.Context, p Process) error {
	if c.Count < 1 || c.Count > leaf.MaxBatch {
		return leaf.BadField("count", c.Count, fmt.Sprintf("must be 1 to %d", leaf.MaxBatch))
	}
	switch {
	case c.Snowflake && c.Tag != "":
		return leaf.BadField("tag", c.Tag, "must not be given with --snowflake, which knows no tags")
	case c.Snowflake:
		return issue(ctx, p, c, &nodeFlags{Settings: c.Settings}, manage.NextSnowflake{N: c.Count})
	case c.Tag == "":
		return &usageError{fmt.Errorf(`expected "<tag>" or --snowflake`), "leaf next --help"}
	}
	return issue(ctx, p, c, c, manage.Next{Tag: c.Tag, N: c.Count})
}

func issue[Part any](ctx context.Context, p Process, c *nextCmd, from opener, request manage.Request[Part, manage.Issued]) error {
	return with(ctx, p, from, func(b manage.Backend) error {
		issued, err := manage.Ask(ctx, b, request)
		if err != nil {
			return err
		}
		return c.print(p.Stdout, issued.Ranges)
	})
}

func (c *nextCmd) print(w io.Writer, ranges []leaf.Range) error {
	if !c.JSON {
		return printIDs(w, ranges)
	}
	ids := make([]string, 0, c.Count)
	for _, r := range ranges {
		for id := r.Lo; id < r.Hi; id++ {
			ids = append(ids, strconv.FormatInt(id, 10))
		}
	}
	return printJSON(w, map[string]any{"ids": ids})
}

func printIDs(w io.Writer, ranges []leaf.Range) error {
	out := bufio.NewWriter(w)
	for _, r := range ranges {
		for id := r.Lo; id < r.Hi; id++ {
			_, _ = out.Write(strconv.AppendInt(nil, id, 10))
			_ = out.WriteByte('\n')
		}
	}
	return out.Flush() // reports the first error of all writes
}
