package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/idlog"
)

type benchCmd struct {
	loadFlags
	Log       string `placeholder:"FOLDER" help:"Write all IDs to logs in this folder, one per client and node, for leaf verify. It must have none yet."`
	LogFormat string `default:"binary" enum:"binary,text,times" placeholder:"FORMAT" help:"Form of the logs: binary, text, or times: text with the times of each call, for leaf verify --strict. (default binary)"`
	Quiet     bool   `short:"q" help:"No progress on standard error."`
	JSON      bool   `name:"json" help:"Print the report as JSON."`
}

// Help implements kong.HelpProvider.
func (benchCmd) Help() string {
	return `Asks running nodes for IDs over HTTP and reports rates, latencies and errors, each second and at the end. The IDs are used up.

  leaf bench --tag orders
  leaf bench --url http://a:8080 --url http://b:8080 --tag orders --count 1000 --log ids --ids 1000000000
  leaf verify ids/*
  leaf bench --tag orders --rate 5000 --duration 1m
  leaf bench --sequence chat --entities 1000 --log ids --log-format times
  leaf verify --strict ids/*

Without --rate each client sends its next request when the last one is answered. A slow server is then asked less often, and the latencies look better than those of callers who do not wait for one another.

With --rate requests are due at fixed times, whether the server keeps up or not, and a latency counts from the time at which its request was due, so that the wait behind slow ones is in it (no "coordinated omission"). Give enough --clients: what is still due at the end is reported as not sent.

Latencies are those of answered requests, with an error below 1 %; failed requests have figures of their own. A request on a kept connection that the server has closed meanwhile is sent again once, as HTTP clients do. After a failed connection a client without --rate waits 10 ms.

The logs are flushed each second and at the end; Ctrl-C ends a run like --duration. An error that repeating cannot mend, such as an unknown tag, ends a run that has received no ID yet. IDs of snowflake mode are logged under the key snowflake, numbers of an entity under the key SEQUENCE/ENTITY.

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
	b, err := c.prepare(p, "leaf bench")
	if err != nil {
		return err
	}
	if c.Log != "" {
		if err = b.openLogs(c.Log, c.LogFormat); err != nil {
			return err
		}
	}
	report, err := c.drive(ctx, p, b, c.Quiet)
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

// formatTimes is the form of logs that are text with the times of each call.
const formatTimes = "times"

// openLogs creates the logs of a run.
func (b *bench) openLogs(folder, format string) (err error) {
	if b.times = format == formatTimes; b.times {
		format = string(idlog.Text)
	}
	b.logs, err = openLogs(folder, b.clients, len(b.nodes), idlog.Format(format))
	return err
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
