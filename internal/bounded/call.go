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
var errStuck = errors.New("calls hang beyond their deadline")

// Guard guards the calls of one database or cluster fence. Do not change its fields after the
// first call.
type Guard struct {
	Runtime leaf.Runtime
	What    string        // for texts, e.g. `store "default"`
	Limit   int           // how many abandoned calls may run before further ones fail at once
	Total   *atomic.Int64 // counts abandoned calls; several guards may share it; nil: they are not counted

	abandoned atomic.Int32 // calls that outlived their deadline and still run
}

// Grace is how long after its deadline a call may take to return.
const Grace = 500 * time.Millisecond

// Do runs f with a deadline, or for as long as parent lives. A panic becomes an
// error. A call that ignores its deadline is abandoned after the grace: it goes on
// in its goroutine, its result is dropped, and it counts against the limit of
// abandoned calls until it returns.
func Do[T any](parent context.Context, g *Guard, timeout time.Duration, f func(context.Context) (T, error)) (T, error) {
	var zero T
	if n := g.abandoned.Load(); n >= int32(g.Limit) {
		return zero, fmt.Errorf("%w: %d calls to %s", errStuck, n, g.What)
	}
	ctx, cancel := g.Runtime.WithTimeout(parent, timeout)
	defer cancel()
	value, late, err := Call(ctx, g.Runtime, g.What, Grace, func() (T, error) { return f(ctx) })
	if late == nil {
		return value, err
	}
	g.abandoned.Add(1)
	if g.Total != nil {
		g.Total.Add(1)
	}
	g.Runtime.Go(func() {
		_ = g.Runtime.Wait(context.Background(), late, 0)
		g.abandoned.Add(-1)
	})
	return zero, fmt.Errorf("call to %s abandoned %v after its deadline: %w", g.What, Grace, context.DeadlineExceeded)
}

// PanicError is a panic of a function that [Recover] ran.
type PanicError struct {
	What  string // of Recover
	Cause any
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("%s panicked: %v\n%s", e.What, e.Cause, e.Stack)
}

// Recover returns what f returns. A panic of f becomes a *PanicError that names what. Use it for a
// library's code in a goroutine of ours: without it, a panic there ends the process.
func Recover[T any](what string, f func() (T, error)) (value T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &PanicError{what, p, debug.Stack()}
		}
	}()
	return f()
}

// Call is Recover in a goroutine. When f has not returned within the grace after ctx ended, late is
// closed when f returns, and what it returns is dropped. Otherwise late is nil.
func Call[T any](ctx context.Context, rt leaf.Runtime, what string, grace time.Duration, f func() (T, error)) (value T, late <-chan struct{}, err error) {
	type outcome struct {
		value T
		err   error
	}
	result := new(outcome) // read only after done is closed
	done := make(chan struct{})
	rt.Go(func() {
		defer close(done)
		result.value, result.err = Recover(what, f)
	})
	if rt.Wait(ctx, done, 0) != nil {
		_ = rt.Wait(context.Background(), done, grace)
	}
	select {
	case <-done:
		return result.value, nil, result.err
	default:
		return value, done, nil
	}
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
