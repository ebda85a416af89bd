package cli

import (
	"context"

	"github.com/leaf-idgen/leaf/app"
)

type serveCmd struct {
	Settings settings `embed:""`
}

// Help implements kong.HelpProvider.
func (serveCmd) Help() string {
	return `Without any configuration the IDs come from an SQLite file in the data directory, which the first start creates, with the demo tag leaf-segment-test.

Every flag is also a key of the configuration file and an environment variable: --http-addr is LEAF_HTTP_ADDR, and addr in the section http. A flag wins over the environment, the environment over the file, the file over the default.

A database that does not answer does not end the node: it replies 503 and serves once the database is back. SIGINT or SIGTERM stops it cleanly, a second one at once.`
}

// Run serves until ctx ends.
func (c *serveCmd) Run(ctx context.Context, p Process) error {
	l, err := c.Settings.load(p)
	if err != nil {
		return err
	}
	return app.Run(ctx, l.Config, app.Options{
		Logger:  app.NewLogger(p.Stderr, l.Log),
		Version: version(),
		Notes:   l.Notes,
	})
}
