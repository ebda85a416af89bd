package snowflake

import (
	"context"
	"sync/atomic"
	"time"
)

// sleeper is the real Sleep.
//
// A timer of the Go runtime takes at least 1 ms where the poller counts in whole
// milliseconds, as on Linux; a unit of 1 ms would be over before its waiter wakes.
// One waiter at a time therefore sleeps in the kernel, which costs a thread while
// it lasts; one is enough to use up a unit, and the others, however many, get timers.
type sleeper struct{ precise atomic.Bool }

// shortest is the wait from which on a timer is precise enough.
const shortest = 2 * time.Millisecond

// sleep waits for d or until ctx is done. A wait below 2 ms may end only then.
func (s *sleeper) sleep(ctx context.Context, d time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d < shortest && s.precise.CompareAndSwap(false, true) {
		begin := time.Now()
		nanosleep(d)
		s.precise.Store(false)
		// What is left (a signal came, there is no such call here, or the time is that
		// of a synctest bubble and stands still) is for the timer.
		if d -= time.Since(begin); d <= 0 {
			return ctx.Err()
		}
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
