package leaf

import (
	"context"
	"math/rand/v2"
	"time"
)

// Runtime is the seam between an engine and the Go runtime: clock, goroutine
// start, waiting and chance. Every point where an engine can block, apart from
// its store and its disk, which are interfaces of their own, is a call of Wait.
// A simulation that implements Runtime therefore decides the whole schedule from
// one seed (docs/adr/0004). Programs use [SystemRuntime].
//
// All methods are safe for concurrent use.
type Runtime interface {
	// Now returns the wall clock, with a monotonic reading where there is one, so
	// that the difference of two results survives a clock step.
	Now() time.Time

	// Go runs f in a new goroutine. The caller waits for the end of f, if it must.
	Go(f func())

	// Wait blocks until wake is closed or sendable from, d has passed, or ctx is
	// done, and returns ctx.Err() only in the last case: callers look at their own
	// state again to learn which of the first two it was. If wake and ctx are both
	// ready, wake wins. A nil wake never fires; d <= 0 sets no limit of time.
	Wait(ctx context.Context, wake <-chan struct{}, d time.Duration) error

	// WithTimeout is context.WithTimeout on this runtime's clock.
	WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc)

	// Jitter returns a random duration in [d/2, d), and d itself below 2 ns.
	Jitter(d time.Duration) time.Duration
}

// SystemRuntime is the Runtime of a real program.
func SystemRuntime() Runtime { return systemRuntime{} }

type systemRuntime struct{}

func (systemRuntime) Now() time.Time { return time.Now() }

func (systemRuntime) Go(f func()) { go f() }

func (systemRuntime) Wait(ctx context.Context, wake <-chan struct{}, d time.Duration) error {
	if d <= 0 && ctx.Done() == nil {
		<-wake // a select costs three times as much
		return nil
	}
	var elapsed <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		elapsed = t.C
	}
	select {
	case <-wake:
		return nil
	case <-elapsed:
		return nil
	case <-ctx.Done():
		select {
		case <-wake:
			return nil
		default:
			return ctx.Err()
		}
	}
}

func (systemRuntime) WithTimeout(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(parent, d)
}

func (systemRuntime) Jitter(d time.Duration) time.Duration {
	if d < 2 {
		return d
	}
	return d/2 + rand.N(d/2)
}
