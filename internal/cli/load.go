package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/app"
)

// loadFlags say which IDs a command takes from running nodes, and how.
type loadFlags struct {
	URL       []string      `name:"url" sep:"none" default:"http://127.0.0.1:8080" placeholder:"URL" help:"A node; repeat for several, which each client asks in turn. (default http://127.0.0.1:8080)"`
	Tag       []string      `sep:"none" placeholder:"TAG" help:"Take IDs of this tag; repeat for several, which are asked for in turn."`
	Snowflake bool          `help:"Take IDs of snowflake mode, alone or in turn with the tags."`
	Sequence  []string      `sep:"none" placeholder:"NAME" help:"Take numbers of entities of this sequence; repeat for several."`
	Entities  int           `default:"100" placeholder:"N" help:"Entities of each sequence, named 1 to N, which are asked for in turn. (default 100; 1 to 10000)"`
	Count     int           `short:"n" default:"1" placeholder:"N" help:"IDs per request. (default 1; 1 to 100000)"`
	Clients   int           `short:"c" default:"16" placeholder:"N" help:"Clients, each with one request at a time and one connection per node. (default 16; 1 to 10000)"`
	Rate      float64       `placeholder:"N" help:"Requests per second of all clients. (default 0: as fast as they are answered)"`
	Duration  time.Duration `short:"d" placeholder:"TIME" help:"Stop after this time, such as 30s or 1h. (default 10s, without --ids)"`
	IDs       *int64        `name:"ids" placeholder:"N" help:"Stop when this many IDs have been received. (1 or more)"`
	Timeout   time.Duration `default:"5s" placeholder:"TIME" help:"Longest time for a request, connecting included. (default 5s)"`
	Settings  settings      `embed:"" keys:"client"`
}

// prepare checks the flags and returns a run without logs. command is for errors.
func (c *loadFlags) prepare(p Process, command string) (*bench, error) {
	targets, err := c.check(command)
	if err != nil {
		return nil, err
	}
	l, err := c.Settings.loadClient(p)
	if err != nil {
		return nil, err
	}
	secure, err := app.ClientTLS(l)
	if err != nil {
		return nil, err
	}
	token := ""
	if len(l.Auth.Tokens) > 0 {
		token = l.Auth.Tokens[0]
	}
	nodes := make([]benchNode, len(c.URL))
	for i, u := range c.URL {
		if nodes[i], err = newHTTPNode(u, c.Timeout, token, secure); err != nil {
			return nil, err
		}
	}
	b := &bench{targets: targets, nodes: nodes, count: c.Count, clients: c.Clients, rate: c.Rate, tally: newTally(len(nodes), len(targets))}
	if c.IDs != nil {
		b.limit = *c.IDs
	}
	return b, nil
}

// drive carries a run out. The report is there beside an error, too.
func (c *loadFlags) drive(ctx context.Context, p Process, b *bench, quiet bool) (*benchReport, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.Duration > 0 {
		ctx, cancel = context.WithTimeout(ctx, c.Duration)
		defer cancel()
	}
	progress := func(line string) { fmt.Fprintln(p.Stderr, line) }
	if quiet {
		progress = func(string) {}
	}
	elapsed, err := b.run(ctx, cancel, progress)
	return b.report(c, elapsed), err
}

// check looks at the flags and returns what is to be asked for.
func (c *loadFlags) check(command string) ([]benchTarget, error) {
	const maxClients, maxEntities = 10_000, 10_000
	switch {
	case c.Count < 1 || c.Count > leaf.MaxBatch:
		return nil, leaf.BadField("count", c.Count, fmt.Sprintf("must be 1 to %d", leaf.MaxBatch))
	case c.Clients < 1 || c.Clients > maxClients:
		return nil, leaf.BadField("clients", c.Clients, fmt.Sprintf("must be 1 to %d", maxClients))
	case !(c.Rate >= 0 && c.Rate <= 1e7):
		return nil, leaf.BadField("rate", c.Rate, "must be 0 to 10000000")
	case c.Duration < 0:
		return nil, leaf.BadField("duration", c.Duration, "must not be negative")
	case c.IDs != nil && *c.IDs < 1:
		return nil, leaf.BadField("ids", *c.IDs, "must be 1 or more; leave it out for no limit")
	case c.Timeout <= 0:
		return nil, leaf.BadField("timeout", c.Timeout, "must be positive")
	case c.Entities < 1 || c.Entities > maxEntities:
		return nil, leaf.BadField("entities", c.Entities, fmt.Sprintf("must be 1 to %d", maxEntities))
	case len(c.Tag)+len(c.Sequence) == 0 && !c.Snowflake:
		return nil, &usageError{fmt.Errorf("expected --tag, --sequence or --snowflake"), command + " --help"}
	case c.Snowflake && slices.Contains(c.Tag, snowflakeKey):
		return nil, leaf.BadField("tag", snowflakeKey, "must not be asked for together with --snowflake, which logs its IDs under this key")
	}
	if c.Duration == 0 && c.IDs == nil {
		c.Duration = 10 * time.Second
	}
	var targets []benchTarget
	for _, tag := range c.Tag {
		if err := leaf.ValidateTag(tag); err != nil {
			return nil, err
		}
		targets = append(targets, benchTarget{key: tag})
	}
	if c.Snowflake {
		targets = append(targets, benchTarget{key: snowflakeKey, snowflake: true})
	}
	for _, name := range c.Sequence {
		if err := leaf.ValidateTag(name); err != nil {
			return nil, err
		}
		for i := range c.Entities {
			t := benchTarget{sequence: name, entity: strconv.Itoa(i + 1)}
			if t.key = name + "/" + t.entity; slices.Contains(c.Tag, t.key) {
				return nil, leaf.BadField("tag", t.key, "must not be asked for together with --sequence "+name+", which logs numbers under this key")
			}
			targets = append(targets, t)
		}
	}
	return targets, nil
}
