package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/leaf-idgen/leaf/internal/app"
)

// schemaGroup are the commands about the tables of a database.
type schemaGroup struct {
	Print schemaPrintCmd `cmd:"" help:"Print the statements that create the tables."`
	Apply schemaApplyCmd `cmd:"" help:"Create the tables that are missing, and the columns of limits. Existing tables are otherwise left as they are."`
}

type schemaPrintCmd struct {
	Settings settings `embed:"" keys:"schema"`
	Dialect  string   `placeholder:"NAME" help:"mysql (also MariaDB), postgres or sqlite. (default: that of the configured store)"`
}

// Run prints the statements.
func (c *schemaPrintCmd) Run(p Process) error {
	l, err := c.Settings.load(p)
	if err != nil {
		return err
	}
	text, err := app.Schema(l.Config, c.Dialect)
	if err != nil {
		return err
	}
	_, err = io.WriteString(p.Stdout, text)
	return err
}

type schemaApplyCmd struct {
	Settings settings `embed:"" keys:"schema"`
	jsonFlag
	AcceptRule   bool     `help:"Record the configured stores and tag rules in every database, in place of others. Only after all nodes were stopped, and Java servers for good, and the rows were moved after that to where the new rules expect them."`
	LeaveOut     []string `sep:"none" secret:"" placeholder:"URL" help:"With --accept-rule: a database of the rule so far that the new rule has not, repeatable. Its rows are compared, and it is closed for nodes with the rule so far."`
	LeaveOutFile string   `secretfile:"" placeholder:"FILE" help:"File that holds the values of --leave-out, one per line."`
	Lost         []string `sep:"none" placeholder:"NAME" help:"With --accept-rule: a database of the rule so far, by its name there, that no node can ever reach again, repeatable. Its rows are not compared. Give a name once for each database that is lost: rules of two clusters can have one of that name each."`
	Above        int64    `placeholder:"NUMBER" help:"With --lost: a number that is not below any ID of the tags that lived in several databases. The command says when it needs one, and what to add to the highest ID in your own tables."`
}

// Help implements kong.HelpProvider.
func (schemaApplyCmd) Help() string {
	return `leaf_alloc holds the tags, leaf_tag_option their settings and limits, leaf_client_option the limits of clients, leaf_meta the tag rule. leaf_worker, leaf_worker_bound, leaf_worker_namespace and leaf_worker_peer hold the worker IDs of snowflake mode, leaf_slot, leaf_slot_bound and leaf_slot_namespace which node serves which tags in strict order, leaf_node the nodes that clients find. In leaf_repair and leaf_repair_node the nodes tell each other that a database lost commits; there is also kept where the numbers of deleted tags end. leaf_audit is the log of administrative changes, leaf_token has the named tokens.

A leaf_alloc of the Java server is used as it is, and leaf_tag_option gets the columns of limits if it lacks them. The user of the database needs the right to create and alter tables for this command only. A store in etcd has no tables.

While Java servers serve snowflake mode, start each node with --no-snowflake-enable, or with their registry, as docs/MIGRATION.md says: without either, nodes take worker IDs from leaf_worker as soon as it is there, and a Java server can have the same ones.`
}

// Run creates the tables.
func (c *schemaApplyCmd) Run(ctx context.Context, p Process) error {
	l, err := c.Settings.load(p)
	if err != nil {
		return err
	}
	leaveOut, err := c.leaveOut()
	if err != nil {
		return err
	}
	var change *app.RuleChange
	switch {
	case c.Above != 0 && len(c.Lost) == 0:
		return &usageError{errors.New("--above is for --lost only"), "leaf schema apply --help"}
	case c.AcceptRule:
		change = &app.RuleChange{LeaveOut: leaveOut, Lost: c.Lost, Above: c.Above}
	case len(leaveOut)+len(c.Lost) > 0:
		return &usageError{errors.New("--leave-out and --lost are for --accept-rule only"), "leaf schema apply --help"}
	}
	report, err := app.ApplySchema(ctx, l.Config, app.Options{Warn: p.warn, NoEmbedded: l.EmptyStore(p.Environ)}, change)
	if c.JSON && err == nil {
		return printJSON(p.Stdout, map[string]any{"report": report})
	}
	for _, line := range report {
		fmt.Fprintln(p.Stdout, line)
	}
	return err
}

// leaveOut returns the databases that the new rule leaves out.
func (c *schemaApplyCmd) leaveOut() ([]string, error) {
	switch {
	case c.LeaveOutFile != "" && len(c.LeaveOut) > 0:
		return nil, &usageError{errors.New("--leave-out and --leave-out-file must not be set together"), "leaf schema apply --help"}
	case c.LeaveOutFile != "":
		return linesOf("--leave-out-file", c.LeaveOutFile)
	}
	return c.LeaveOut, nil
}
