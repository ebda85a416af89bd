package cli

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/leaf-idgen/leaf/internal/config"
)

// configGroup are the commands about the configuration.
type configGroup struct {
	Check configCheckCmd `cmd:"" help:"Check the configuration and print every value with its source."`
}

type configCheckCmd struct {
	Settings settings `embed:"" keys:"every"`
	JSON     bool     `name:"json" help:"Print JSON."`
	Diff     bool     `help:"Ask the running node what a reload would change, and what needs a restart. Nothing changes."`
}

// configReport is the JSON form.
type configReport struct {
	File     string           `json:"file,omitempty"`
	Settings []config.Setting `json:"settings"`
	Notes    []string         `json:"notes,omitempty"`
	Warnings []string         `json:"warnings,omitempty"`
}

// Run prints the effective configuration. An invalid one is an error.
func (c *configCheckCmd) Run(ctx context.Context, p Process) error {
	if c.Diff {
		return c.diff(ctx, p)
	}
	l, err := c.Settings.loadNode(p)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(p.Stdout, configReport{l.File, l.Settings(), l.Notes, l.Warnings})
	}
	w := tabwriter.NewWriter(p.Stdout, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "KEY\tVALUE\tSOURCE")
	for _, s := range l.Settings() {
		value := strings.Join(s.Values, " ")
		if value == "" {
			value = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Key, value, s.Source)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, note := range l.Notes {
		fmt.Fprintf(p.Stdout, "note: %s\n", note)
	}
	for _, warning := range l.Warnings {
		fmt.Fprintf(p.Stdout, "warning: %s\n", warning)
	}
	return nil
}
