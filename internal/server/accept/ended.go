package accept

import (
	"context"
	"errors"
	"fmt"

	"github.com/leaf-idgen/leaf"
)

// Ended gives an error from the end of a request's context the sentinel
// leaf.ErrNotReady, if it has none of its own: the client went away or its deadline
// passed, or Shutdown gave up. All of them can be retried. Any other err, nil too, is
// returned as it is.
func Ended(err error) error {
	if err == nil || leaf.ClassOf(err).Err != nil {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w: %w", leaf.ErrNotReady, err)
	}
	return err
}
