package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/server/admin"
)

type drainCmd struct {
	nodeFlags
	Delay string `name:"delay" placeholder:"TIME" help:"How long the node serves after it said that it is not ready. (default: the node's drain-delay)"`
	Wait  bool   `name:"wait" default:"true" negatable:"" help:"Wait until the node has ended, and show how far it is. (default true)"`
}

// Help implements kong.HelpProvider.
func (drainCmd) Help() string {
	return `The node says on /readyz and to gRPC health checks that it is not ready, and leaves the list of nodes that clients read. It serves for the delay, then ends its connections and streams after the requests that it has read, returns the unused IDs to the databases, and its process ends with code 0. SIGTERM does the same.

A delay that is longer than the interval at which load balancers and clients look (clients of this project: 2s) lets all of them move before their connection ends.`
}

const (
	drainPoll    = 200 * time.Millisecond // how often the node is asked how far it is
	drainSilence = time.Minute            // how long its machine may be silent, which may be gone with it
)

// Run drains the running node.
func (c *drainCmd) Run(ctx context.Context, p Process) error {
	delay := time.Duration(-1)
	if c.Delay != "" {
		var err error
		if delay, err = time.ParseDuration(c.Delay); err != nil || delay < 0 || delay > manage.MaxDrainDelay {
			return &usageError{fmt.Errorf("--delay=%q: must be a duration such as 5s, 0s to 10m", c.Delay), "leaf drain --help"}
		}
	}
	return with(ctx, p, c, func(n manage.Backend) error {
		node, err := manage.Ask(ctx, n, manage.GetInfo{})
		if err != nil {
			return err
		}
		if err := manage.Tell(ctx, n, manage.Drain{Delay: delay}); err != nil {
			return err
		}
		if !c.Wait {
			_, err := fmt.Fprintln(p.Stdout, "draining")
			return err
		}
		return followDrain(ctx, p, n, node)
	})
}

// followDrain prints each stage until the node is gone. A node that does not answer in the
// middle of its end is about to be gone. A supervisor may start the next one so soon that
// this command never sees the data directory without a node.
func followDrain(ctx context.Context, p Process, n manage.Backend, node manage.Info) error {
	t := time.NewTicker(drainPoll)
	defer t.Stop()
	heard := time.Now()
	for last := ""; ; {
		info, err := manage.Ask(ctx, n, manage.GetInfo{})
		if err == nil {
			heard = time.Now()
		}
		switch {
		case errors.Is(err, admin.ErrNoNode), errors.Is(err, admin.ErrNoListener):
			fmt.Fprintln(p.Stdout, "stopped")
			return nil
		case err == nil && (info.PID != node.PID || !info.Started.Equal(node.Started)):
			fmt.Fprintf(p.Stdout, "stopped; process %d has taken its place\n", info.PID)
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("the node goes on stopping: %w", ctx.Err())
		case time.Since(heard) > drainSilence:
			return fmt.Errorf("the node was told to stop, and does not say any more how far it is: %w", err)
		case err == nil && info.Stage != last:
			last = info.Stage
			fmt.Fprintln(p.Stdout, last)
		}
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
}
