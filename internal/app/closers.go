package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// closers undo what was opened, last first.
type closers []func() error

func (c *closers) add(f func() error) { *c = append(*c, f) }

// close runs all functions, also when some fail, and joins their errors.
func (c *closers) close() error {
	var errs []error
	for _, f := range slices.Backward(*c) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}

// errHangs: what was to be closed has not ended in time, and may still work on the data
// directory.
var errHangs = errors.New("has not ended in time")

// closeGrace is how long closeInTime waits when the time of the stop is up.
const closeGrace = time.Second

// closeInTime calls f, which takes no context, and returns soon after ctx has ended at the
// latest: a disk or a driver may never answer. f then ends with the process.
func closeInTime(ctx context.Context, what string, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	late := time.NewTimer(closeGrace)
	defer late.Stop()
	select {
	case err := <-done:
		return err
	case <-late.C:
		return fmt.Errorf("%s %w: %w", what, errHangs, context.Cause(ctx))
	}
}
