package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leaf-idgen/leaf/idlog"
)

// live takes IDs from running nodes and checks them. The logs stay where they were written if
// they show a fault, because no other copy of the IDs exists.
func (c *verifyCmd) live(ctx context.Context, p Process) error {
	if len(c.Files) > 0 {
		return &usageError{errors.New("--live takes IDs from nodes, and reads no file"), "leaf verify --help"}
	}
	b, err := c.Load.prepare(p, "leaf verify")
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp(c.Temp, "leaf-verify-")
	if err != nil {
		return &noVerdictError{err}
	}
	format, again := string(idlog.Binary), "leaf verify"
	if c.Strict {
		format, again = formatTimes, "leaf verify --strict"
	}
	if err = b.openLogs(folder, format); err == nil {
		err = c.judge(ctx, p, b, folder)
	}
	if _, none := errors.AsType[*noVerdictError](err); err != nil && !none {
		fmt.Fprintf(p.Stderr, "leaf: the IDs that were taken are in %s; look at them again with %s %s\n", folder, again, filepath.Join(folder, "*"))
		return err
	}
	return errors.Join(err, os.RemoveAll(folder))
}

func (c *verifyCmd) judge(ctx context.Context, p Process, b *bench, folder string) error {
	report, err := c.Load.drive(ctx, p, b, c.Quiet)
	if err != nil {
		return &noVerdictError{err}
	}
	if report.Answered == 0 {
		return &noVerdictError{fmt.Errorf("no request was answered with IDs: %s", report.mostFrequentError())}
	}
	logs, err := filepath.Glob(filepath.Join(folder, "*.idlog"))
	if err != nil {
		return &noVerdictError{err}
	}
	return c.check(context.WithoutCancel(ctx), p, logs, b.missed())
}

// missed returns what the IDs do not show because it is not among them, nil if nothing is.
func (b *bench) missed() error {
	var none []string
	for i := range b.tally.nodes {
		if b.tally.nodes[i].answered.Load() == 0 {
			none = append(none, "from "+b.nodes[i].name())
		}
	}
	came := map[string]bool{}
	for i := range b.tally.targets {
		what := b.targets[i].String()
		came[what] = came[what] || b.tally.targets[i].Load() > 0
	}
	for _, what := range slices.Sorted(maps.Keys(came)) {
		if !came[what] {
			none = append(none, what)
		}
	}
	b.tally.mu.Lock()
	odd := b.tally.kinds[kindMalformed]
	b.tally.mu.Unlock()
	switch {
	case len(none) > 0:
		return fmt.Errorf("%w: no ID came %s; leaf bench shows the errors", errMissed, strings.Join(none, ", "))
	case odd > 0:
		return fmt.Errorf("%w: %d replies were no IDs, or not as many as were asked for", errMissed, odd)
	}
	return nil
}

// String says of what IDs were asked for.
func (t benchTarget) String() string {
	switch {
	case t.snowflake:
		return "of snowflake mode"
	case t.sequence != "": // a short run does not reach all entities
		return fmt.Sprintf("of sequence %q", t.sequence)
	}
	return fmt.Sprintf("of tag %q", t.key)
}
