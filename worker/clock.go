package worker

import (
	"fmt"
	"sync"
	"time"

	"github.com/leaf-idgen/leaf"
)

// clockWatch compares the wall clock with elapsed time. A wall clock that runs ahead
// is not believed: a jump to the year 2099 must not burn the worker ID by a T in that
// year. A step back needs no such care, because T and t never fall.
type clockWatch struct {
	limit time.Duration

	mu      sync.Mutex
	wall    time.Time     // the latest look that was believed, without a monotonic reading
	elapsed time.Duration // elapsed time at that look
	jump    error         // leaf.ErrClock while the clock is not believed
}

// look takes a reading and returns nil, or leaf.ErrClock if it is not believed. A
// clock that is back within the limit is believed again.
func (c *clockWatch) look(now time.Time, elapsed time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	wall := now.Round(0)
	if c.wall.IsZero() {
		c.wall, c.elapsed = wall, elapsed
		return nil
	}
	passed := elapsed - c.elapsed
	ahead := wall.Sub(c.wall) - passed
	if ahead > c.limit {
		c.jump = fmt.Errorf("%w: the wall clock went %v ahead while %v passed, more than the %v that are believed without confirmation",
			leaf.ErrClock, wall.Sub(c.wall).Round(time.Millisecond), passed.Round(time.Millisecond), c.limit)
		return c.jump
	}
	c.jump = nil
	// After a step back the old look stays the measure until the clock has passed it:
	// a clock that comes back has not jumped.
	if wall.After(c.wall) {
		c.wall, c.elapsed = wall, elapsed
	}
	return nil
}

// jumped returns what the last look said.
func (c *clockWatch) jumped() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.jump
}

// believe makes now the measure, because somebody has confirmed it.
func (c *clockWatch) believe(now time.Time, elapsed time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall, c.elapsed, c.jump = now.Round(0), elapsed, nil
}

// elapsed returns the time that has passed since some fixed moment, whatever the
// wall clock did.
func (h *Holder) elapsed(now time.Time) time.Duration {
	if h.cfg.Elapsed != nil {
		return h.cfg.Elapsed()
	}
	return now.Sub(h.made)
}

// ConfirmClock tells the Holder that the wall clock is right, after it reported a
// jump. It returns the time that is now believed.
func (h *Holder) ConfirmClock() time.Time {
	now := h.rt.Now()
	h.clock.believe(now, h.elapsed(now))
	h.log.Info("the wall clock is confirmed", "now", now.UTC())
	h.nudge()
	return now
}
