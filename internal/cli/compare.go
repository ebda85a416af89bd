package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/leaf-idgen/leaf"
	"github.com/leaf-idgen/leaf/internal/manage"
	"github.com/leaf-idgen/leaf/internal/takeover"
)

type compareCmd struct {
	storeFlags
	jsonFlag
	Source sourceFlags `embed:""`

	For   time.Duration `placeholder:"TIME" help:"Go on looking for so long, or until something is found. (default: look once)"`
	Every time.Duration `default:"10s" placeholder:"TIME" help:"How often to look, with --for. (default 10s)"`
}

// Help implements kong.HelpProvider.
func (compareCmd) Help() string {
	return `Runs beside another ID service that still hands out numbers, and says for each tag whether its IDs and those numbers can meet. Nothing is written.

  leaf compare tinyid --from-file tinyid.url
  leaf compare tinyid --from-file tinyid.url --for 24h --every 1m

Give each --tag that leaf import had. A tag must lie above the other service: its lowest ID, which the audit log knows, above every number that the other service has handed out. Verdicts:

  apart      it does; LEFT is how many numbers the other service has until it meets the tag
  will meet  no number is in use by both, and the tag's next range is one of the other service
  meet       some numbers can have been handed out by both
  unknown    it cannot be said: the tag has no entry in the audit log that says where it began (they are kept for audit.keep), or a counter cannot be read or is in a database that is not named, or it is AUTO_INCREMENT, which moves with every ID that is inserted
  no tag     there is no such tag, and if there was one, its numbers were apart

The ranges are compared, not the IDs. To compare IDs, write those of both services to files, and use leaf verify.

` + sourceHelp + `

Exit codes:
  0  all tags apart, or not there
  1  found: meet or will meet
  2  no verdict for some tag, or the command line is wrong
  4  a database or node does not answer`
}

// Run compares tags with the counters of another service.
func (c *compareCmd) Run(ctx context.Context, p Process) error {
	switch {
	case c.For < 0:
		return leaf.BadField("for", c.For, "must be 0s or more")
	case c.Every < minWatch:
		return leaf.BadField("every", c.Every, "must be "+minWatch.String()+" or more")
	}
	source, err := c.Source.open(p, &c.Settings, "compare")
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }() // it was only read
	return with(ctx, p, c, func(b manage.Backend) error { return c.watch(ctx, p, b, source) })
}

// watch looks until the time is over or something is found. It prints what it sees when a verdict
// changes, and at the end.
func (c *compareCmd) watch(ctx context.Context, p Process, b manage.Backend, source takeover.Source) error {
	tick := time.NewTicker(c.Every)
	defer tick.Stop()
	var first, last []takeover.Comparison
	start := time.Now()
	for {
		now, err := c.look(ctx, b, source)
		if ctx.Err() != nil && last != nil {
			return c.conclude(p, last, nil, first, time.Since(start))
		}
		if err != nil {
			return err
		}
		if first == nil {
			first = now
		}
		took := time.Since(start)
		if took >= c.For || judge(now) != nil {
			return c.conclude(p, now, judge(now), first, took)
		}
		if !c.JSON && verdicts(now) != verdicts(last) {
			if err := printComparisons(p.Stdout, now, first, took); err != nil {
				return err
			}
		}
		last = now
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

func (c *compareCmd) conclude(p Process, all []takeover.Comparison, verdict error, first []takeover.Comparison, took time.Duration) error {
	if c.JSON {
		return errors.Join(printJSON(p.Stdout, map[string]any{"tags": all}), verdict)
	}
	return errors.Join(printComparisons(p.Stdout, all, first, took), verdict)
}

// look compares once. Both services go on meanwhile. What counts, the lowest number of a tag, does
// not move.
func (c *compareCmd) look(ctx context.Context, b manage.Backend, source takeover.Source) (all []takeover.Comparison, err error) {
	numberings, err := c.Source.read(ctx, source)
	if err != nil {
		return nil, err
	}
	for _, n := range numberings {
		row, err := rowOf(ctx, b, n.tag)
		if err != nil {
			return nil, err
		}
		all = append(all, takeover.Compare(n.tag, row, n.counters))
	}
	return all, nil
}

// judge returns what was found, nil if no numbers meet.
func judge(all []takeover.Comparison) error {
	for _, c := range all {
		switch c.Verdict {
		case takeover.Meet:
			return fmt.Errorf("tag %q: %d numbers can have been handed out by both services, the first range is %d to %d. Let no client take IDs of the tag, stop the other service, then run leaf import, which raises the tag", c.Tag, c.Numbers, c.Both.Lo, c.Both.Hi-1)
		case takeover.WillMeet:
			return fmt.Errorf("tag %q: its next range begins at %d, and the other service has handed out all below %d. Let no client take IDs of the tag, stop the other service, then run leaf import, which raises the tag", c.Tag, c.Row, c.End)
		}
	}
	for _, c := range all {
		if c.Verdict == takeover.Unknown {
			return &noVerdictError{fmt.Errorf("tag %q: %s", c.Tag, c.Reason)}
		}
	}
	return nil
}

// verdicts is a text that differs where the verdicts do.
func verdicts(all []takeover.Comparison) string {
	var b bytes.Buffer
	for _, c := range all {
		fmt.Fprintf(&b, "%q %s\n", c.Tag, c.Verdict)
	}
	return b.String()
}

// printComparisons prints a table. first is how it was took ago, for the pace of the other
// service.
func printComparisons(w io.Writer, all, first []takeover.Comparison, took time.Duration) error {
	rows := [][]string{{"TAG", "OTHER BELOW", "MAX_ID", "VERDICT", "LEFT", "MEETS IN"}}
	for i, c := range all {
		row, left, in := "-", "-", "-"
		if c.Verdict != takeover.NoTag {
			row = strconv.FormatInt(c.Row, 10)
		}
		if c.Verdict == takeover.Apart {
			left = strconv.FormatInt(c.Left, 10)
			if moved := c.End - first[min(i, len(first)-1)].End; len(all) == len(first) && moved > 0 {
				in = paceText(float64(c.Left) / float64(moved) * took.Seconds())
			}
		}
		rows = append(rows, []string{printable(c.Tag), strconv.FormatInt(c.End, 10), row, string(c.Verdict), left, in})
	}
	return printTable(w, rows)
}

// paceText is about how long something takes.
func paceText(seconds float64) string {
	switch days := seconds / 86_400; {
	case days > 3650:
		return "more than 10 years"
	case days > 3:
		return fmt.Sprintf("%.0f days", days)
	}
	return (time.Duration(seconds) * time.Second).String()
}
