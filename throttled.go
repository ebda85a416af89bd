package leaf

import (
	"errors"
	"fmt"
	"time"
)

// Throttled returns an error that is ErrThrottled, says which limit was reached, and
// when a retry may succeed: after 1 ms or more.
func Throttled(limit string, after time.Duration) error {
	return &throttledError{limit, max(after, time.Millisecond)}
}

type throttledError struct {
	limit string
	after time.Duration
}

func (e *throttledError) Error() string {
	return fmt.Sprintf("%v: %s, retry after %v", ErrThrottled, e.limit, e.after.Round(time.Millisecond))
}

func (e *throttledError) Unwrap() error { return ErrThrottled }

// RetryAfter returns how long the caller of a request that failed with err should wait
// before it tries again, 0 if err does not say.
func RetryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*throttledError](err); ok {
		return e.after
	}
	return 0
}
