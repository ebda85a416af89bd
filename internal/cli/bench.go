package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/idlog"
)

type benchCmd struct {
	URL       []string      `name:"url" sep:"none" default:"http://127.0.0.1:8080" placeholder:"URL" help:"A node; repeat for several, which each client asks in turn. (default http://127.0.0.1:8080)"`
	Tag       []string      `sep:"none" placeholder:"TAG" help:"Take IDs of this tag; repeat for several, which are asked for in turn."`
	Snowflake bool          `help:"Take IDs of snowflake mode, alone or in turn with the tags."`
	Count     int           `short:"n" default:"1" placeholder:"N" help:"IDs per request. (default 1; 1 to 100000)"`
	Clients   int           `short:"c" default:"16" placeholder:"N" help:"Clients, each with one request at a time and one connection per node. (default 16; 1 to 10000)"`
	Rate      float64       `placeholder:"N" help:"Requests per second of all clients. (default 0: as fast as they are answered)"`
	Duration  time.Duration `short:"d" placeholder:"TIME" help:"Stop after this time, such as 30s or 1h. (default 10s, without --ids)"`
	IDs       *int64        `name:"ids" placeholder:"N" help:"Stop when this many IDs have been received. (1 or more)"`
	Timeout   time.Duration `default:"5s" placeholder:"TIME" help:"Longest time for a request, connecting included. (default 5s)"`
	Log       string        `placeholder:"FOLDER" help:"Write all IDs to logs in this folder, one per client and node, for leaf verify. It must have none yet."`
	LogFormat string        `default:"binary" enum:"binary,text" placeholder:"FORMAT" help:"Form of the logs: binary or text. (default binary)"`
	Quiet     bool          `short:"q" help:"No progress on standard error."`
	JSON      bool          `name:"json" help:"Print the report as JSON."`
}

// Help implements kong.HelpProvider.
func (benchCmd) Help() string {
	return `Asks running nodes for IDs over HTTP and reports rates, latencies and errors, each second and at the end. The IDs are used up.

  leaf bench --tag orders
  leaf bench --url http://a:8080 --url http://b:8080 --tag orders --count 1000 --log ids --ids 1000000000
  leaf verify ids/*
  leaf bench --tag orders --rate 5000 --duration 1m

Without --rate each client sends its next request when the last one is answered. A slow server is then asked less often, and the latencies look better than those of callers who do not wait for one another.

With --rate requests are due at fixed times, whether the server keeps up or not, and a latency counts from the time at which its request was due, so that the wait behind slow ones is in it (no "coordinated omission"). Give enough --clients: what is still due at the end is reported as not sent.

Latencies are those of answered requests, with an error below 1 %; failed requests have figures of their own. A request on a kept connection that the server has closed meanwhile is sent again once, as HTTP clients do. After a failed connection a client without --rate waits 10 ms.

The logs are flushed each second and at the end; Ctrl-C ends a run like --duration. An error that repeating cannot mend, such as an unknown tag, ends a run that has received no ID yet. IDs of snowflake mode are logged under the key snowflake.

Exit codes:
  0  done, whether or not some requests failed
  1  the logs could not be written
  2  command line wrong
  3  no such tag
  4  no request was answered with IDs
  5  refused: no valid token, or switched off by an administrator`
}

// snowflakeKey is the key of snowflake IDs in logs, and in their requests.
const snowflakeKey = "snowflake"

// Run drives the nodes.
func (c *benchCmd) Run(ctx context.Context, p Process) error {
	targets, err := c.check()
	if err != nil {
		return err
	}
	nodes := make([]benchNode, len(c.URL))
	for i, u := range c.URL {
		if nodes[i], err = newHTTPNode(u, c.Timeout); err != nil {
			return err
		}
	}
	b := &bench{
		targets: targets, nodes: nodes, count: c.Count, clients: c.Clients, rate: c.Rate,
		tally: newTally(len(nodes)),
	}
	if c.IDs != nil {
		b.limit = *c.IDs
	}
	if c.Log != "" {
		if b.logs, err = openLogs(c.Log, c.Clients, len(nodes), idlog.Format(c.LogFormat)); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if c.Duration > 0 {
		ctx, cancel = context.WithTimeout(ctx, c.Duration)
		defer cancel()
	}
	progress := func(line string) { fmt.Fprintln(p.Stderr, line) }
	if c.Quiet {
		progress = func(string) {}
	}
	elapsed, err := b.run(ctx, cancel, progress)
	report := b.report(c, elapsed)
	if err != nil && report.Answered == 0 {
		return err
	}
	if c.JSON {
		err = firstError(err, printJSON(p.Stdout, report))
	} else {
		err = firstError(err, report.print(p.Stdout))
	}
	if err == nil && report.Answered == 0 {
		err = fmt.Errorf("%w: no request was answered with IDs: %s", leaf.ErrNotReady, report.mostFrequentError())
	}
	return err
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// check looks at the flags and returns what is to be asked for.
func (c *benchCmd) check() ([]benchTarget, error) {
	const maxClients = 10_000
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
	case len(c.Tag) == 0 && !c.Snowflake:
		return nil, &usageError{fmt.Errorf("expected --tag or --snowflake"), "leaf bench --help"}
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
	return targets, nil
}

// openLogs creates a log for each client and node.
func openLogs(folder string, clients, nodes int, format idlog.Format) (logs [][]*idlog.Writer, err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	for client := range clients {
		logs = append(logs, nil)
		for node := range nodes {
			name := fmt.Sprintf("client-%04d-node-%d.idlog", client+1, node+1)
			w, err := idlog.Create(filepath.Join(folder, name), format)
			if err != nil {
				_ = closeLogs(logs)
			}
			if errors.Is(err, fs.ErrExist) {
				return nil, fmt.Errorf("--log %s: the folder holds the logs of an earlier run (%s); give another folder, or remove this one", folder, name)
			}
			if err != nil {
				return nil, fmt.Errorf("log of a client: %w", err)
			}
			logs[client] = append(logs[client], w)
		}
	}
	return logs, nil
}

func closeLogs(logs [][]*idlog.Writer) (err error) {
	for _, of := range logs {
		for _, w := range of {
			err = firstError(err, w.Close())
		}
	}
	return err
}
