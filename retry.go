package leaf

import (
	"errors"
	"fmt"
	"time"
)

// Throttled returns an error that is ErrThrottled, says which limit was reached, and
// when a retry may succeed: after 1 ms or more. It is for limits that an administrator
// set; a server that cannot serve says so with Later.
func Throttled(limit string, after time.Duration) error { return Later(ErrThrottled, limit, after) }

// Later returns an error that is the sentinel, says why, and when a retry may succeed:
// after 1 ms or more.
func Later(sentinel error, why string, after time.Duration) error {
	return &laterError{sentinel, why, max(after, time.Millisecond)}
}

type laterError struct {
	sentinel error
	why      string
	after    time.Duration
}

func (e *laterError) Error() string {
	return fmt.Sprintf("%v: %s, retry after %v", e.sentinel, e.why, e.after.Round(time.Millisecond))
}

func (e *laterError) Unwrap() error { return e.sentinel }

// RetryAfter returns how long the caller of a request that failed with err should wait
// before it tries again, 0 if err does not say.
func RetryAfter(err error) time.Duration {
	if e, ok := errors.AsType[*laterError](err); ok {
		return e.after
	}
	return 0
}
