package bounded

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/leaf-idgen/leaf"
)

// errStuck: too many abandoned calls have not returned.
var errStuck = errors.New("segment: calls hang beyond their deadline")

// Callee is who is called: a database, or the cluster fence. Its fields stay as they are
// once it is called.
type Callee struct {
	Runtime leaf.Runtime
	What    string        // for texts, e.g. `store "default"`
	Limit   int           // how many abandoned calls may run before further ones fail at once
	Total   *atomic.Int64 // counts abandoned calls; shared with other callees

	abandoned atomic.Int32 // calls that outlived their deadline and still run
}

// Grace is how long after its deadline a call may take to return.
const Grace = 500 * time.Millisecond

// Do runs f with a deadline, or for as long as parent lives. A panic becomes an
// error. A call that ignores its deadline is abandoned after the grace: it goes on
// in its goroutine, its result is dropped, and it counts against the limit of
// abandoned calls until it returns.
func Do[T any](parent context.Context, c *Callee, timeout time.Duration, f func(context.Context) (T, error)) (T, error) {
	var zero T
	if n := c.abandoned.Load(); n >= int32(c.Limit) {
		return zero, fmt.Errorf("%w: %d calls to %s", errStuck, n, c.What)
	}
	type outcome struct {
		value T
		err   error
	}
	result := new(outcome) // read only after done is closed
	done := make(chan struct{})
	ctx, cancel := c.Runtime.WithTimeout(parent, timeout)
	defer cancel()
	c.Runtime.Go(func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				result.err = fmt.Errorf("%s panicked: %v\n%s", c.What, p, debug.Stack())
			}
		}()
		result.value, result.err = f(ctx)
	})
	if c.Runtime.Wait(ctx, done, 0) != nil {
		_ = c.Runtime.Wait(context.Background(), done, Grace)
	}
	select {
	case <-done:
		return result.value, result.err
	default:
	}
	c.abandoned.Add(1)
	c.Total.Add(1)
	c.Runtime.Go(func() {
		_ = c.Runtime.Wait(context.Background(), done, 0)
		c.abandoned.Add(-1)
	})
	return zero, fmt.Errorf("call to %s abandoned %v after its deadline: %w", c.What, Grace, context.DeadlineExceeded)
}

// Within calls f, which uses the disk, and waits for its end as long as ctx allows.
func Within(ctx context.Context, rt leaf.Runtime, what string, f func() error) error {
	var result error // read only after done is closed
	done := make(chan struct{})
	rt.Go(func() {
		defer close(done)
		result = f()
	})
	if err := rt.Wait(ctx, done, 0); err != nil {
		return fmt.Errorf("%s: the disk does not answer: %w", what, err)
	}
	return result
}
