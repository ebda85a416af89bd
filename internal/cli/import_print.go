package cli

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/leaf-idgen/leaf/internal/takeover"
)

// printPlans prints what an import does, or did.
func printPlans(w io.Writer, plans []takeover.Plan, wrote bool) error {
	for i, p := range plans {
		if i > 0 {
			fmt.Fprintln(w)
		}
		tw := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
		line := func(name, format string, args ...any) {
			fmt.Fprintf(tw, "%s\t%s\n", name, fmt.Sprintf(format, args...))
		}
		line("tag", "%s", printable(p.Tag))
		for _, c := range p.Counters {
			line("other service", "%s (%s)", c.State, c.From)
		}
		if p.Action != takeover.Refuse {
			line("its numbers", "all below %d count as handed out", p.End)
		}
		if p.Exists {
			line("max_id", "%d", p.Row)
		}
		line("plan", "%s", actionText(p))
		if p.Verdict == takeover.Meet {
			line("by both", "%d numbers can have been handed out by both services, first %d to %d", p.Numbers, p.Both.Lo, p.Both.Hi-1)
		}
		if p.Verdict == takeover.Unknown && p.Action != takeover.Refuse && p.Exists {
			line("not known", "whether numbers below %d were handed out by both services: %s", p.Row, p.Reason)
		}
		for _, s := range p.Stop {
			line("to be sure", "%s;", s)
		}
		for _, c := range p.Counters {
			if c.Unchecked != "" && p.Action != takeover.Refuse {
				line("to be sure", "take the right to UPDATE its table from the other service's user: its server, version %q, ignores CHECK", c.Unchecked)
			}
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	if !wrote {
		_, err := fmt.Fprintln(w, "\nnothing was written")
		return err
	}
	return nil
}

func actionText(p takeover.Plan) string {
	switch p.Action {
	case takeover.Create:
		text := fmt.Sprintf("create the tag, first ID %d, step %d", p.First, p.Step)
		if p.Drop {
			text += "; the tag was there before, and every node drops the IDs that it holds of it; then " + restartKeepers
		}
		return text
	case takeover.Raise:
		if p.First == p.Row {
			return "repair the tag: max_id is not below the numbers of the other service, and nodes may hold IDs that are; every node drops the IDs that it holds; then " + restartKeepers
		}
		return fmt.Sprintf("raise max_id to %d; every node drops the IDs below that it holds; then ", p.First) + restartKeepers
	case takeover.Nothing:
		return "nothing to write: the tag issues no number of the other service"
	}
	return "refused: " + p.Reason
}
