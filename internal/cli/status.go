package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/manage"
)

type statusCmd struct {
	nodeFlags
	smallJSONFlag
	Mode  string        `placeholder:"MODE" words:"segment,snowflake" help:"Look at the readiness of one mode: segment or snowflake. (default: any of the two)"`
	Tags  int           `default:"20" placeholder:"N" help:"How many tags to show, those whose stock lasts shortest. (default 20; 0 to 1000)"`
	Alive bool          `help:"Succeed as soon as the node answers, ready or not, for what ends a node that does not."`
	Quiet bool          `short:"q" help:"Print nothing unless the node cannot be asked, for scripts and health checks."`
	Watch bool          `short:"w" help:"Show the state again and again until Ctrl-C."`
	Every time.Duration `default:"2s" placeholder:"TIME" help:"How often --watch asks. (default 2s; at least 100ms)"`
}

// Help implements kong.HelpProvider.
func (statusCmd) Help() string {
	return `Shows on one screen: whether each mode issues IDs and why not, the alarms with what to do, the tags whose IDs in memory last shortest, and the worker ID with its time bound and the clocks of other nodes.

  leaf status
  leaf status --watch --endpoint https://node.example:8081 --admin-token-file token
  leaf status --quiet && echo ready

LASTS is how long a tag is served if the database does not answer from now on: its stock divided by its rate, the IDs per second of the last one to two segment.sync-interval. A dash: no ID was taken meanwhile. A node that is asked for more IDs makes longer ranges by itself.

What restarts a node by its health asks with --alive. A node without its database, or one that waits for a worker ID, is not ready, and a restart is no cure. Nor does a configuration that is wrong by now count: of it, --alive reads data-dir and endpoint alone.

Exit codes:
  0  ready: one of the modes issues IDs, or the one that --mode names; with --alive, the node answers
  1  not ready, or another failure
  2  command line or configuration wrong
  4  node not reachable`
}

// open is that of nodeFlags, but for a health check that ends the node.
func (c *statusCmd) open(ctx context.Context, p Process) (manage.Backend, func() error, error) {
	if !c.Alive {
		return c.nodeFlags.open(ctx, p)
	}
	l, err := c.Settings.loadAlive(p)
	if err != nil {
		return nil, nil, err
	}
	return openLoaded(ctx, p, l, c.Settings.values(), nil)
}

// Run shows the state of the running node.
func (c *statusCmd) Run(ctx context.Context, p Process) error {
	switch {
	case c.Alive && (c.Mode != "" || c.Watch):
		return &usageError{errors.New("--alive excludes --mode and --watch"), "leaf status --help"}
	case c.Watch && (c.JSON || c.Quiet), c.JSON && c.Quiet:
		return &usageError{errors.New("--watch, --json and --quiet exclude each other"), "leaf status --help"}
	case c.Tags < 0 || c.Tags > manage.MaxStatusTags:
		return leaf.BadField("tags", c.Tags, fmt.Sprintf("must be 0 to %d", manage.MaxStatusTags))
	case c.Every < minWatch:
		return leaf.BadField("every", c.Every, "must be at least "+minWatch.String())
	}
	if _, err := (manage.Status{}).Of(c.Mode); err != nil {
		return err
	}
	return with(ctx, p, c, func(b manage.Backend) error {
		if c.Watch {
			return watch(ctx, p, b, c.Tags, c.Every)
		}
		return c.show(ctx, p, b)
	})
}

// show prints the state once.
func (c *statusCmd) show(ctx context.Context, p Process, b manage.Backend) error {
	tags := c.Tags
	if c.Quiet {
		tags = 0
	}
	st, err := manage.Ask(ctx, b, manage.GetStatus{Tags: tags})
	switch {
	case err != nil:
		return err
	case c.Quiet:
	case c.JSON:
		err = printJSON(p.Stdout, st)
	default:
		err = printStatus(p.Stdout, st)
	}
	if err != nil {
		return err
	}
	if ready, err := st.Of(c.Mode); err != nil || !ready && !c.Alive {
		return &notReadyError{c.Mode}
	}
	return nil
}

// notReadyError ends a command that has printed why the node is not ready, or was asked to
// print nothing.
type notReadyError struct{ mode string }

func (e *notReadyError) Error() string {
	if e.mode != "" {
		return e.mode + " mode is not ready"
	}
	return "the node is not ready"
}
