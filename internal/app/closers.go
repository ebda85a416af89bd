package app

import (
	"errors"
	"slices"
)

// closers undo what was opened, last first.
type closers []func() error

func (c *closers) add(f func() error) { *c = append(*c, f) }

// close runs all of them, whatever fails.
func (c *closers) close() error {
	var errs []error
	for _, f := range slices.Backward(*c) {
		errs = append(errs, f())
	}
	return errors.Join(errs...)
}
