package cli

import (
	"context"
	"fmt"
	"io"

	"github.com/leaf-idgen/leaf/internal/config"
	"github.com/leaf-idgen/leaf/internal/manage"
)

type reloadCmd struct {
	nodeFlags
	smallJSONFlag
}

// Help implements kong.HelpProvider.
func (reloadCmd) Help() string {
	return `The node reads its configuration file again, and all files that the configuration names, as after SIGHUP and, within some seconds, after each change of a file (reload-interval). The command shows what is in force from now on, and what takes effect only after a restart. When anything is wrong with the new configuration, nothing changes, and the exit code is 2. leaf config check --diff shows the same before, and changes nothing.

The node keeps the flags and variables that it was started with: what they set cannot change.`
}

// Run reloads the configuration of the running node.
func (c *reloadCmd) Run(ctx context.Context, p Process) error {
	return ask(ctx, p, c, manage.ReloadConfig{}, func(w io.Writer, r manage.Reload) error {
		return printReload(w, r, "now", "nothing has changed; certificates, tokens and passwords were read again")
	})
}

// diff shows what a reload of the running node would change.
func (c *configCheckCmd) diff(ctx context.Context, p Process) error {
	for key := range c.Settings.values() {
		if key != "data-dir" && remoteHelp[key] == "" {
			return &usageError{fmt.Errorf("--diff asks the running node, which has flags of its own: leave out --%s", config.Key{Name: key}.Flag()), "leaf config check --help"}
		}
	}
	asker := struct {
		nodeFlags
		smallJSONFlag
	}{nodeFlags{c.Settings}, smallJSONFlag{c.JSON}}
	return ask(ctx, p, &asker, manage.PlanReload{}, func(w io.Writer, r manage.Reload) error {
		return printReload(w, r, "after a reload", "a reload would change nothing")
	})
}

// printReload prints a line for each key, with the moment at which its new value takes effect.
func printReload(w io.Writer, r manage.Reload, counts, nothing string) error {
	if len(r.Changed)+len(r.Restart) == 0 {
		_, err := fmt.Fprintln(w, nothing)
		return err
	}
	rows := [][]string{{"KEY", "NOW", "THEN", "COUNTS"}}
	list := func(counts string, differ []manage.Difference) {
		for _, d := range differ {
			now, then := orDash(d.Now), orDash(d.Then)
			switch {
			case d.Now == "" && d.Then == "":
				now, then = "a file", "other content"
			case d.Now == d.Then:
				now, then = "a secret", "another one"
			}
			rows = append(rows, []string{d.Key, now, then, counts})
		}
	}
	list(counts, r.Changed)
	list("after a restart", r.Restart)
	return printTable(w, rows)
}
