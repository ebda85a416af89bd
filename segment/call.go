package segment

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// errStuck: too many abandoned calls have not returned.
var errStuck = errors.New("segment: calls hang beyond their deadline")

// callee is who is called: a database, or the cluster fence.
type callee struct {
	alloc     *Allocator
	what      string       // for texts, e.g. `store "default"`
	abandoned atomic.Int32 // calls that outlived their deadline and still run
}

// grace is how long after its deadline a store call may take to return.
const grace = 500 * time.Millisecond

// call runs f with a deadline, or for as long as parent lives. A panic becomes an
// error. A call that ignores its deadline is abandoned after the grace: it goes on
// in its goroutine, its result is dropped, and it counts against the limit of
// abandoned calls until it returns.
func call[T any](parent context.Context, s *callee, timeout time.Duration, f func(context.Context) (T, error)) (T, error) {
	a := s.alloc
	var zero T
	if n := s.abandoned.Load(); n >= int32(a.cfg.MaxLoads) {
		return zero, fmt.Errorf("%w: %d calls to %s", errStuck, n, s.what)
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
				result.err = fmt.Errorf("%s panicked: %v\n%s", s.what, p, debug.Stack())
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
	return zero, fmt.Errorf("call to %s abandoned %v after its deadline: %w", s.what, grace, context.DeadlineExceeded)
}
