package chaos

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// permanent is an error that asking again cannot cure.
type permanent struct{ error }

func (p permanent) Unwrap() error { return p.error }

// poll asks until there is no error, and returns the last one when the limit or
// ctx ends, or when it is permanent.
func poll(ctx context.Context, limit time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		err := ask(ctx)
		var end permanent
		if err == nil || errors.As(err, &end) {
			return err
		}
		if last == nil || ctx.Err() == nil {
			last = err // and not that the limit cut an attempt off
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not within %v: %w", limit, last)
		case <-tick.C:
		}
	}
}

// pause waits for d, and returns early with the error of a ctx that ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
