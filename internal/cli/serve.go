package cli

import (
	"context"
	"io/fs"
	"os"
	"os/signal"
	"syscall"

	"github.com/leaf-idgen/leaf/internal/config"

	"github.com/leaf-idgen/leaf/internal/app"
)

type serveCmd struct {
	Settings settings `embed:"" keys:"all"`
}

// Help implements kong.HelpProvider.
func (serveCmd) Help() string {
	return `Without any configuration both modes run: the IDs of segment mode come from an SQLite file in the data directory, which the first start creates, with the demo tag leaf-segment-test, and so does the worker ID of snowflake mode.

Every flag is also a key of the configuration file and an environment variable: --http-addr is LEAF_HTTP_ADDR, and addr in the section http. A flag wins over the environment, the environment over the file, the file over the default.

A database or registry that does not answer does not end the node: it replies 503, serves once it is back, and the other mode serves meanwhile. SIGINT or SIGTERM stops it cleanly, a second one at once. A change of the configuration file or of a file that it names, SIGHUP and leaf reload make the node read the configuration again: tokens, the TLS certificates (tls.client-ca and order.ca, too), the keys of opaque IDs, the passwords of databases and of etcd, the address of alarm.webhook, log.level, segment.max-step, segment.fixed-step, limit.max-waiting and limit.target-wait change without a restart, and the log names what else changed.`
}

// Run serves until ctx ends.
func (c *serveCmd) Run(ctx context.Context, p Process) error {
	l, err := c.Settings.loadNode(p)
	if err != nil {
		return err
	}
	// A terminal that closes must not end a node, so the signal is caught from here on.
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	defer signal.Stop(hangup)
	// The end of the program that reads the log must not end a node either: as long as the signal is
	// caught, a write to a closed pipe is an error, and the log ignores it.
	closedPipe := make(chan os.Signal, 1)
	signal.Notify(closedPipe, syscall.SIGPIPE)
	defer signal.Stop(closedPipe)
	out := app.NewLogPipe(p.Stderr, l.Log)
	defer out.Close()
	log, level := app.NewLogger(out, l.Log)
	err = app.Run(ctx, l.Config, app.Options{
		Reload: hangup,
		Load: func() (config.Config, map[string]fs.FileInfo, error) {
			l, err := c.Settings.loadNode(p)
			if err != nil {
				return config.Config{}, nil, err
			}
			return l.Config, l.Files(), nil
		},
		Files:     l.Files(),
		Logger:    log,
		Level:     level,
		Version:   version(),
		Notes:     l.Notes,
		Warnings:  l.Warnings,
		Snowflake: l.AsksForSnowflake(),
		IsSet:     l.IsSet,
		Manager:   app.ManagerOf(p.Environ, os.Getpid()),
	})
	if err == nil {
		return nil
	}
	printError(out, err) // beside the log, whose reader may have stopped: the process must end all the same
	return &printedError{err}
}

// printedError is an error that the user sees already.
type printedError struct{ error }

// Unwrap returns the error itself, for the exit code.
func (e *printedError) Unwrap() error { return e.error }
