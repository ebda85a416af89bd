package segment

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// errStuck: too many abandoned calls have not returned.
var errStuck = errors.New("segment: store calls hang beyond their deadline")

// grace is how long after its deadline a store call may take to return.
const grace = 500 * time.Millisecond

// call runs f with a deadline, or for as long as parent lives. A panic becomes an
// error. A call that ignores its
// deadline is abandoned after the grace: it goes on in its goroutine, its result is
// dropped, and it counts against the limit of abandoned calls until it returns.
func call[T any](parent context.Context, s *shard, timeout time.Duration, f func(context.Context) (T, error)) (T, error) {
	a := s.alloc
	var zero T
	if n := s.abandoned.Load(); n >= int32(a.cfg.MaxLoads) {
		return zero, fmt.Errorf("%w: %d calls to store %q", errStuck, n, s.name)
	}
	type outcome struct {
		value T
		err   error
	}
	result := new(outcome) // read only after done is closed
	done := make(chan struct{})
	ctx, cancel := a.rt.WithTimeout(parent, timeout)
	defer cancel()
	a.rt.Go(func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				result.err = fmt.Errorf("store panicked: %v\n%s", p, debug.Stack())
			}
		}()
		result.value, result.err = f(ctx)
	})
	if a.rt.Wait(ctx, done, 0) != nil {
		_ = a.rt.Wait(context.Background(), done, grace)
	}
	select {
	case <-done:
		return result.value, result.err
	default:
	}
	s.abandoned.Add(1)
	a.counters.abandoned.Add(1)
	a.rt.Go(func() {
		_ = a.rt.Wait(context.Background(), done, 0)
		s.abandoned.Add(-1)
	})
	return zero, fmt.Errorf("store call abandoned %v after its deadline: %w", grace, context.DeadlineExceeded)
}
