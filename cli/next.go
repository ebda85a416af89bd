package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/server/admin"
)

type nextCmd struct {
	backendFlags
	Tag   string `arg:"" help:"Name of the tag."`
	Count int    `name:"count" short:"n" default:"1" placeholder:"N" help:"How many. (default 1; 1 to 100000)"`
}

// Run issues IDs.
func (c *nextCmd) Run(ctx context.Context, p Process) error {
	if c.Count < 1 || c.Count > leaf.MaxBatch {
		return leaf.BadField("count", c.Count, fmt.Sprintf("must be 1 to %d", leaf.MaxBatch))
	}
	return c.with(ctx, p, func(b admin.Backend) error {
		ranges, err := b.Next(ctx, c.Tag, c.Count)
		if err != nil {
			return err
		}
		if c.JSON {
			ids := make([]string, 0, c.Count)
			for _, r := range ranges {
				for id := r.Lo; id < r.Hi; id++ {
					ids = append(ids, strconv.FormatInt(id, 10))
				}
			}
			return printJSON(p.Stdout, map[string]any{"ids": ids})
		}
		return printIDs(p.Stdout, ranges)
	})
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
